// Package schema lets a test hold objects against the schema of their kind without an API server: types, bounds, list rules
// and CEL, by the code that the API server itself runs. What the pure rules in internal write is held against it.
package schema

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/agentrooms/agentrooms/config"
)

// Checker holds objects of one kind against its schema.
type Checker struct {
	structural *structuralschema.Structural
	types      validation.SchemaValidator
	rules      *cel.Validator
}

// checkers holds those made so far, by plural. Making one compiles every rule.
var checkers sync.Map

// For gives the checker of a kind, by its plural: tasks.
func For(tb testing.TB, plural string) *Checker {
	tb.Helper()
	if c, ok := checkers.Load(plural); ok {
		return c.(*Checker)
	}
	c := compile(tb, plural)
	checkers.Store(plural, c)
	return c
}

func compile(tb testing.TB, plural string) *Checker {
	tb.Helper()
	raw, err := fs.ReadFile(config.Files, path.Join("crd", "bases", "agentrooms.dev_"+plural+".yaml"))
	if err != nil {
		tb.Fatalf("reading the schema: %v", err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(raw, crd); err != nil {
		tb.Fatalf("reading the schema: %v", err)
	}
	props := &apiextensions.JSONSchemaProps{}
	in := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(in, props, nil); err != nil {
		tb.Fatalf("converting the schema: %v", err)
	}
	c := &Checker{}
	if c.structural, err = structuralschema.NewStructural(props); err != nil {
		tb.Fatalf("reading the structure of the schema: %v", err)
	}
	if c.types, _, err = validation.NewSchemaValidator(props); err != nil {
		tb.Fatalf("making a validator of types: %v", err)
	}
	if c.rules = cel.NewValidator(c.structural, true, celconfig.PerCallLimit); c.rules == nil {
		tb.Fatalf("the schema of %s has no rules", plural)
	}
	return c
}

// Update gives what the API server would say to a change of an object, nil when it would accept it.
func (c *Checker) Update(old, next runtime.Object) error {
	before, err := asMap(old)
	if err != nil {
		return err
	}
	after, err := asMap(next)
	if err != nil {
		return err
	}
	errs := validation.ValidateCustomResourceUpdate(nil, after, before, c.types)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.structural, after)...)
	more, _ := c.rules.Validate(context.Background(), nil, c.structural, after, before, celconfig.RuntimeCELCostBudget)
	return errors.Join(append(errs, more...).ToAggregate())
}

func asMap(o runtime.Object) (map[string]any, error) {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("converting %T: %w", o, err)
	}
	return m, nil
}
