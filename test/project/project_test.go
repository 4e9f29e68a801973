// Package project tests that the files which describe this project to tools and clusters tell the truth.
package project

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const (
	root   = "../.."
	module = "github.com/agentrooms/agentrooms"
)

// project is the part of kubebuilder's PROJECT format, version 3, that this project uses.
type project struct {
	Version     string     `json:"version"`
	Domain      string     `json:"domain"`
	Layout      []string   `json:"layout"`
	MultiGroup  bool       `json:"multigroup"`
	ProjectName string     `json:"projectName"`
	Repo        string     `json:"repo"`
	Resources   []resource `json:"resources"`
}

type resource struct {
	API struct {
		CRDVersion string `json:"crdVersion"`
		Namespaced bool   `json:"namespaced"`
		SSA        bool   `json:"ssa"`
	} `json:"api"`
	Controller bool   `json:"controller"`
	Domain     string `json:"domain"`
	Group      string `json:"group"`
	Kind       string `json:"kind"`
	Path       string `json:"path"`
	Plural     string `json:"plural"`
	Version    string `json:"version"`
}

// served is what a cluster is told of a kind.
type served struct {
	Group, Version, Kind, Plural string
	Namespaced                   bool
}

// crd is the part of a CustomResourceDefinition that PROJECT speaks of.
type crd struct {
	APIVersion string `json:"apiVersion"`
	Spec       struct {
		Group string `json:"group"`
		Scope string `json:"scope"`
		Names struct {
			Kind   string `json:"kind"`
			Plural string `json:"plural"`
		} `json:"names"`
		Versions []struct {
			Name string `json:"name"`
		} `json:"versions"`
	} `json:"spec"`
}

// manifest is the part of any Kubernetes object that names it.
type manifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
	Resources []string `json:"resources"`
}

func TestProjectNamesThisModule(t *testing.T) {
	got := readProject(t)
	got.Resources = nil
	want := project{
		Version:     "3",
		Domain:      "agentrooms.dev",
		Layout:      []string{"go.kubebuilder.io/v4"},
		ProjectName: "agentrooms",
		Repo:        module,
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("PROJECT (-want +got):\n%s", diff)
	}
	mod := readFile(t, "go.mod")
	if !bytes.HasPrefix(mod, []byte("module "+got.Repo+"\n")) {
		t.Errorf("PROJECT says the module is %s, go.mod does not", got.Repo)
	}
}

func TestProjectListsWhatTheCRDsServe(t *testing.T) {
	var inProject []served
	for _, r := range readProject(t).Resources {
		inProject = append(inProject, served{
			Group:      strings.Trim(r.Group+"."+r.Domain, "."),
			Version:    r.Version,
			Kind:       r.Kind,
			Plural:     cmp.Or(r.Plural, regularPlural(r.Kind)),
			Namespaced: r.API.Namespaced,
		})
		if r.API.CRDVersion != "v1" {
			t.Errorf("%s: crdVersion is %q, want v1", r.Kind, r.API.CRDVersion)
		}
	}

	var inCRDs []served
	for _, file := range glob(t, "config/crd/bases/*.yaml") {
		c := decode[crd](t, readFile(t, file))
		if c.APIVersion != "apiextensions.k8s.io/v1" {
			t.Errorf("%s: apiVersion is %s", file, c.APIVersion)
		}
		for _, v := range c.Spec.Versions {
			inCRDs = append(inCRDs, served{
				Group:      c.Spec.Group,
				Version:    v.Name,
				Kind:       c.Spec.Names.Kind,
				Plural:     c.Spec.Names.Plural,
				Namespaced: c.Spec.Scope == "Namespaced",
			})
		}
	}
	byKind := func(a, b served) int { return cmp.Compare(a.Kind, b.Kind) }
	slices.SortFunc(inProject, byKind)
	slices.SortFunc(inCRDs, byKind)
	if diff := gocmp.Diff(inCRDs, inProject); diff != "" {
		t.Errorf("PROJECT differs from config/crd/bases (-crd +project):\n%s", diff)
	}
}

func TestProjectPointsAtCodeThatExists(t *testing.T) {
	for _, r := range readProject(t).Resources {
		t.Run(r.Kind, func(t *testing.T) {
			dir, inModule := strings.CutPrefix(r.Path, module+"/")
			kind := strings.ToLower(r.Kind)
			if !inModule || !exists(dir, kind+"_types.go") {
				t.Errorf("path %s has no %s_types.go", r.Path, kind)
			}
			if got := exists("controllers", kind); got != r.Controller {
				t.Errorf("controller is %t, but whether controllers/%s exists is %t", r.Controller, kind, got)
			}
			if got := exists(dir, "applyconfiguration"); got != r.API.SSA {
				t.Errorf("ssa is %t, but whether apply configurations exist is %t", r.API.SSA, got)
			}
		})
	}
}

// The binary applies the folders as they are, kustomize applies what is listed: both must be the same.
func TestKustomizationsListEveryManifest(t *testing.T) {
	for _, dir := range []string{"config/crd", "config/rbac", "config/policy", "config/manager", "config/bridge", "config/network-policy", "config/prometheus"} {
		t.Run(dir, func(t *testing.T) {
			listed := decode[manifest](t, readFile(t, dir+"/kustomization.yaml")).Resources
			slices.Sort(listed)
			present := []string{}
			for _, file := range append(glob(t, dir+"/*.yaml"), glob(t, dir+"/bases/*.yaml")...) {
				if name := strings.TrimPrefix(file, dir+"/"); name != "kustomization.yaml" {
					present = append(present, name)
				}
			}
			slices.Sort(present)
			if diff := gocmp.Diff(present, listed); diff != "" {
				t.Errorf("%s/kustomization.yaml (-files +listed):\n%s", dir, diff)
			}
		})
	}
}

// No transformer adds names or namespaces, so each manifest has to carry them.
func TestManifestsStandOnTheirOwn(t *testing.T) {
	clusterScoped := []string{
		"Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
		"FlowSchema", "PriorityLevelConfiguration",
	}
	seen := map[string]string{}
	for _, file := range glob(t, "config/*/*.yaml") {
		if filepath.Base(file) == "kustomization.yaml" || strings.HasPrefix(file, "config/samples/") {
			continue
		}
		for doc := range bytes.SplitSeq(readFile(t, file), []byte("\n---\n")) {
			m := decode[manifest](t, doc)
			if m.Kind == "" || m.Metadata.Name == "" {
				t.Errorf("%s: a document without kind or name", file)
				continue
			}
			wantNamespace := "agentrooms-system"
			if slices.Contains(clusterScoped, m.Kind) {
				wantNamespace = ""
			}
			if m.Metadata.Namespace != wantNamespace {
				t.Errorf("%s: %s %s is in namespace %q, want %q", file, m.Kind, m.Metadata.Name, m.Metadata.Namespace, wantNamespace)
			}
			key := m.Kind + "/" + m.Metadata.Name
			if first, twice := seen[key]; twice {
				t.Errorf("%s: %s stands in %s already", file, key, first)
			}
			seen[key] = file
		}
	}
}

// People get their rights through the roles that clusters have anyway.
func TestUserRolesAreAggregated(t *testing.T) {
	aggregated := map[string]string{"admin": "admin", "editor": "edit", "viewer": "view"}
	for _, kind := range []string{"room", "agent", "task", "consent"} {
		for level, into := range aggregated {
			file := "config/rbac/" + kind + "_" + level + "_role.yaml"
			m := decode[manifest](t, readFile(t, file))
			if want := "agentrooms-" + kind + "-" + level; m.Metadata.Name != want {
				t.Errorf("%s: the role is named %s, want %s", file, m.Metadata.Name, want)
			}
			if label := "rbac.authorization.k8s.io/aggregate-to-" + into; m.Metadata.Labels[label] != "true" {
				t.Errorf("%s: the label %s is missing", file, label)
			}
		}
	}
}

func readProject(t *testing.T) project {
	t.Helper()
	return decode[project](t, readFile(t, "PROJECT"))
}

// regularPlural is the plural that kubebuilder gives a kind unless PROJECT says otherwise.
func regularPlural(kind string) string {
	singular := strings.ToLower(kind)
	for _, ending := range []string{"s", "x", "ch", "sh"} {
		if strings.HasSuffix(singular, ending) {
			return singular + "es"
		}
	}
	return singular + "s"
}

func decode[T any](t *testing.T, data []byte) T {
	t.Helper()
	var out T
	if err := yaml.Unmarshal(data, &out); err != nil {
		t.Fatalf("decoding: %v\n%s", err, data)
	}
	return out
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i], _ = filepath.Rel(root, files[i])
	}
	return files
}

func exists(elem ...string) bool {
	_, err := os.Stat(filepath.Join(append([]string{root}, elem...)...))
	return err == nil
}
