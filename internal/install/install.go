// Package install puts Agent Rooms into a cluster: the kinds, the roles and the admission policies, and on request the
// demo. Everything but the demo is applied server-side and can be applied again at any time.
package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/config"
)

const (
	// FieldOwner is who the API server says applied the manifests.
	FieldOwner = "agentrooms-install"
	// Namespace is where the manager and the bridge live.
	Namespace = "agentrooms-system"

	crdTimeout   = 30 * time.Second
	pollInterval = 50 * time.Millisecond
)

// Installer applies the manifests to one cluster.
type Installer struct {
	config *rest.Config
	client client.Client
	files  fs.FS
}

// New makes an installer. The configuration must be allowed to do everything that the manifests grant.
func New(cluster *rest.Config) (*Installer, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("making the scheme: %w", err)
		}
	}
	c, err := client.New(cluster, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return &Installer{config: cluster, client: c, files: config.Files}, nil
}

// as gives a client that acts as a user who may do everything.
func (i *Installer) as(user string) (client.Client, error) {
	impersonating := rest.CopyConfig(i.config)
	impersonating.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters"}}
	c, err := client.New(impersonating, client.Options{Scheme: i.client.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster as %s: %w", user, err)
	}
	return c, nil
}

// Client is the client that the installer works with.
func (i *Installer) Client() client.Client { return i.client }

// System applies the kinds, the roles and the policies, and waits until the API server serves the kinds. The policies
// bite a moment later: see AwaitPolicies.
func (i *Installer) System(ctx context.Context) error {
	var objects []*unstructured.Unstructured
	for _, dir := range []string{"crd/bases", "rbac", "policy"} {
		found, err := i.read(dir)
		if err != nil {
			return err
		}
		objects = append(objects, found...)
	}
	// A namespace goes before what lives in it, whatever the files are called.
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	for _, object := range objects {
		err := i.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(FieldOwner), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return i.awaitCRDs(ctx, objects)
}

func rank(object *unstructured.Unstructured) int {
	if object.GetKind() == "Namespace" {
		return 0
	}
	return 1
}

func (i *Installer) awaitCRDs(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		err := wait.PollUntilContextTimeout(ctx, pollInterval, crdTimeout, true, func(ctx context.Context) (bool, error) {
			var crd apiextensionsv1.CustomResourceDefinition
			err := i.client.Get(ctx, client.ObjectKeyFromObject(object), &crd)
			return err == nil && isEstablished(&crd), nil
		})
		if err != nil {
			return fmt.Errorf("waiting for the kind %s to be served: %w", object.GetName(), err)
		}
	}
	return nil
}

func isEstablished(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}

// read returns the objects of a folder's manifests, in the order of the files.
func (i *Installer) read(dir string) ([]*unstructured.Unstructured, error) {
	entries, err := fs.ReadDir(i.files, dir)
	if err != nil {
		return nil, fmt.Errorf("reading the manifests: %w", err)
	}
	var objects []*unstructured.Unstructured
	for _, entry := range entries {
		if entry.IsDir() || entry.Name() == "kustomization.yaml" {
			continue
		}
		found, err := i.readFile(path.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

func (i *Installer) readFile(name string) ([]*unstructured.Unstructured, error) {
	file, err := i.files.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading the manifests: %w", err)
	}
	defer func() { _ = file.Close() }()
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		if len(object.Object) > 0 { // a document of comments is empty
			objects = append(objects, object)
		}
	}
}
