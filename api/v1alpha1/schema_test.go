package v1alpha1_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// readCRDs gives the kinds as the API server is told of them.
func readCRDs(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	found := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range crdFiles(t) {
		raw, err := os.ReadFile(file) //nolint:gosec // a file of this repository
		must(t, err)
		crd := &apiextensionsv1.CustomResourceDefinition{}
		must(t, yaml.UnmarshalStrict(raw, crd))
		found[crd.Spec.Names.Kind] = crd
	}
	return found
}

func schemaOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// walk visits every field of a schema but apiVersion, kind and metadata, and what is within a condition: that type is not
// ours.
func walk(s *apiextensionsv1.JSONSchemaProps, path string, visit func(path string, s *apiextensionsv1.JSONSchemaProps)) {
	if path != "" {
		visit(path, s)
	}
	if path == "status.conditions" {
		return
	}
	if s.Items != nil {
		walk(s.Items.Schema, path+"[]", visit)
	}
	for name, p := range s.Properties {
		switch {
		case path != "":
			walk(&p, path+"."+name, visit)
		case name != "apiVersion" && name != "kind" && name != "metadata":
			walk(&p, name, visit)
		}
	}
}

func number[T int64 | float64](n *T) int64 {
	if n == nil {
		return 0
	}
	return int64(*n)
}

// What the tables of this package say of the schema, they say of all of it: a bound, an enum, a required field or a time
// that is added without a test makes this fail.
func TestTheTablesNameEveryBound(t *testing.T) {
	for kind, crd := range readCRDs(t) {
		t.Run(kind, func(t *testing.T) {
			gotBounds, gotEnums, gotTimes := map[string]bound{}, map[string][]string{}, map[string]string{}
			var gotRequired []string
			walk(schemaOf(crd), "", func(path string, s *apiextensionsv1.JSONSchemaProps) {
				for _, name := range s.Required {
					gotRequired = append(gotRequired, path+"."+name)
				}
				switch {
				case len(s.Enum) > 0:
					for _, v := range s.Enum {
						gotEnums[path] = append(gotEnums[path], strings.Trim(string(v.Raw), `"`))
					}
				case s.Format == "date-time":
					gotTimes[path] = "seconds"
					if strings.Contains(s.Pattern, `\d{6}`) {
						gotTimes[path] = "microseconds"
					}
				case s.Type == "string":
					gotBounds[path] = bound{path, characters, number(s.MinLength), number(s.MaxLength), ""}
				case s.Type == "array":
					gotBounds[path] = bound{path, items, number(s.MinItems), number(s.MaxItems), ""}
				case s.Minimum != nil || s.Maximum != nil:
					gotBounds[path] = bound{path, value, number(s.Minimum), number(s.Maximum), ""}
				}
				if s.AdditionalProperties != nil || s.XPreserveUnknownFields != nil {
					t.Errorf("%s takes fields that nobody declared", path)
				}
			})
			gotRequired = append(gotRequired, schemaOf(crd).Required...)

			wantBounds := map[string]bound{}
			for _, b := range slices.Concat(bounds[kind], boundsElsewhere[kind]) {
				b.with = ""
				wantBounds[b.path] = b
				if b.max == 0 {
					t.Errorf("%s is not bounded", b.path)
				}
			}
			opts := cmp.Options{cmp.AllowUnexported(bound{}), cmpopts.EquateEmpty(), cmpopts.SortSlices(func(a, b string) bool { return a < b })}
			for _, c := range []struct {
				name      string
				want, got any
			}{
				{"bounds", wantBounds, gotBounds},
				{"enums", enums[kind], gotEnums},
				{"times", times[kind], gotTimes},
				{"required fields", required[kind], gotRequired},
			} {
				if diff := cmp.Diff(c.want, c.got, opts); diff != "" {
					t.Errorf("%s (-table +schema):\n%s", c.name, diff)
				}
			}
		})
	}
}
