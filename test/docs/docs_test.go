// Package docs holds the documentation to what it speaks of.
package docs

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/yaml"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

const root = "../.."

// pages gives every page for people, by its path from the top.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "AGENTS.md"} {
		found[name] = read(t, name)
	}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		name, err := filepath.Rel(root, path)
		found[filepath.ToSlash(name)] = read(t, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 20 {
		t.Fatalf("only %d pages were found", len(found))
	}
	return found
}

func read(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// block is what stands between fences.
type block struct {
	language string
	text     string
}

// split takes the blocks out of a page.
func split(page string) (prose string, blocks []block) {
	var b strings.Builder
	inside := false
	for line := range strings.Lines(page) {
		language, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && !inside:
			blocks = append(blocks, block{language: language})
			inside = true
		case isFence:
			inside = false
		case inside:
			blocks[len(blocks)-1].text += line
		default:
			b.WriteString(line)
		}
	}
	return b.String(), blocks
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	marks   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors gives what a link to a part of a page may name.
func anchors(page string) []string {
	prose, _ := split(page)
	var list []string
	for _, m := range heading.FindAllStringSubmatch(prose, -1) {
		list = append(list, strings.ReplaceAll(marks.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return list
}

func TestEveryRelativeLinkLeadsSomewhere(t *testing.T) {
	all := pages(t)
	links := 0
	for name, page := range all {
		prose, _ := split(page)
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(name, "docs/reference/") {
				continue
			}
			links++
			path := name
			if target != "" {
				path = filepath.ToSlash(filepath.Join(filepath.Dir(name), target))
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(all[path]), anchor) {
				t.Errorf("%s links to %s, and %s has no such heading", name, m[1], path)
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were found", links)
	}
}

// manifests gives the objects that a page shows, in blocks and in what it feeds to kubectl.
func manifests(page string) []string {
	_, blocks := split(page)
	var texts []string
	for _, b := range blocks {
		if b.language == "yaml" {
			texts = append(texts, b.text)
		}
		for _, part := range strings.Split(b.text, "<<'EOF'\n")[1:] {
			text, _, _ := strings.Cut(part, "\nEOF\n")
			texts = append(texts, text)
		}
	}
	var list []string
	for _, text := range texts {
		for doc := range strings.SplitSeq(text, "\n---\n") {
			if strings.Contains(doc, "apiVersion: "+v1alpha1.GroupVersion.String()) {
				list = append(list, doc)
			}
		}
	}
	return list
}

func TestEveryManifestIsOfItsKind(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	strict := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	shown, count := map[string]bool{}, 0
	for name, page := range pages(t) {
		for _, doc := range manifests(page) {
			count++
			_, kind, err := strict.Decode([]byte(doc), nil, nil)
			if err != nil {
				t.Errorf("%s: %v in:\n%s", name, err, doc)
				continue
			}
			if name == "docs/kinds/"+strings.ToLower(kind.Kind)+".md" {
				shown[kind.Kind] = true
			}
		}
	}
	if count < 8 {
		t.Errorf("only %d manifests were found", count)
	}
	crds, err := filepath.Glob(filepath.Join(root, "config", "crd", "bases", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range crds {
		var crd struct {
			Spec struct{ Names struct{ Kind string } }
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(raw, &crd); err != nil {
			t.Fatal(err)
		}
		if kind := crd.Spec.Names.Kind; !shown[kind] {
			t.Errorf("docs/kinds/%s.md does not show a %s", strings.ToLower(kind), kind)
		}
	}
}

// literals gives every string in the program's own code, tests left out.
func literals(t *testing.T, visit func(path, text string)) {
	t.Helper()
	for _, dir := range []string{"cmd", "controllers", "internal", "mcpbridge"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err //nolint:wrapcheck // it names the file
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if text, err := strconv.Unquote(lit.Value); err == nil {
						visit(filepath.ToSlash(path), text)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheListOfMetricsIsTheProgramsOwn(t *testing.T) {
	name := regexp.MustCompile(`^agentrooms_[a-z_]+$`)
	registered := map[string]bool{}
	literals(t, func(_, text string) {
		if name.MatchString(text) {
			registered[text] = true
		}
	})
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(agentrooms_[a-z_]+)` \\|").FindAllStringSubmatch(read(t, "docs/operations.md"), -1) {
		listed[m[1]] = true
	}
	if len(registered) == 0 {
		t.Fatal("no metrics were found in the code")
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(registered)), slices.Sorted(maps.Keys(listed))); diff != "" {
		t.Errorf("docs/operations.md and the code differ (- code, + page):\n%s", diff)
	}
	for page, text := range pages(t) {
		for _, m := range regexp.MustCompile("`(agentrooms_[a-z_]+)`").FindAllStringSubmatch(text, -1) {
			if !registered[m[1]] {
				t.Errorf("%s speaks of the metric %s, which is not there", page, m[1])
			}
		}
	}
}

// tools gives the names of the tools, as the toolset's tables have them.
func tools(t *testing.T) []string {
	t.Helper()
	names := append(toolsOf(t, "tools.go"), toolsOf(t, "filetools.go")...)
	slices.Sort(names)
	return names
}

func toolsOf(t *testing.T, name string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "mcpbridge", "toolsets", "rooms", name), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		if kind, ok := lit.Type.(*ast.SelectorExpr); !ok || kind.Sel.Name != "Tool" {
			return true
		}
		for _, e := range lit.Elts {
			field, ok := e.(*ast.KeyValueExpr)
			if !ok || field.Key.(*ast.Ident).Name != "Name" {
				continue
			}
			if value, ok := field.Value.(*ast.BasicLit); ok {
				name, err := strconv.Unquote(value.Value)
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, name)
			}
		}
		return true
	})
	return names
}

func TestEveryToolIsSpokenOf(t *testing.T) {
	page := read(t, "docs/bridge.md")
	_, rest, found := strings.Cut(page, "## Tools")
	table, _, ends := strings.Cut(rest, "\n## ")
	if !found || !ends {
		t.Fatal("docs/bridge.md has no section Tools")
	}
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `.*$").FindAllString(table, -1) {
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row, -1) {
			listed = append(listed, m[1])
		}
	}
	slices.Sort(listed)
	if diff := cmp.Diff(tools(t), listed); diff != "" {
		t.Errorf("docs/bridge.md and the toolset differ (- toolset, + page):\n%s", diff)
	}
	var concepts bytes.Buffer
	for name, text := range pages(t) {
		if name != "docs/bridge.md" && filepath.Dir(name) == "docs" {
			concepts.WriteString(text)
		}
	}
	for _, name := range tools(t) {
		if !bytes.Contains(concepts.Bytes(), []byte("`"+name+"`")) {
			t.Errorf("no concept's page speaks of %s", name)
		}
	}
}

func TestEveryErrorCodeOfThePagesExists(t *testing.T) {
	codes := map[string]bool{}
	literals(t, func(path, text string) {
		if strings.HasSuffix(path, "internal/problem/problem.go") {
			codes[text] = true
		}
	})
	rows := regexp.MustCompile("(?m)^\\| (`[A-Z_]+`[^|]*) \\| \\d+ \\|").FindAllStringSubmatch(read(t, "docs/bridge.md"), -1)
	if len(rows) < 10 {
		t.Fatalf("docs/bridge.md lists %d rows of codes", len(rows))
	}
	for _, row := range rows {
		for _, m := range regexp.MustCompile("`([A-Z_]+)`").FindAllStringSubmatch(row[1], -1) {
			if !codes[m[1]] {
				t.Errorf("docs/bridge.md lists the code %s, which is not there", m[1])
			}
		}
	}
}

func TestEveryDecisionIsListed(t *testing.T) {
	records, err := filepath.Glob(filepath.Join(root, "docs", "adr", "0*.md"))
	if err != nil || len(records) == 0 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	index := read(t, "docs/adr/README.md")
	for _, path := range records {
		if name := filepath.Base(path); !strings.Contains(index, "("+name+")") {
			t.Errorf("docs/adr/README.md does not list %s", name)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"\n## Context\n", "\n## Decision\n", "\n## Consequences\n"} {
			if !bytes.Contains(raw, []byte(part)) {
				t.Errorf("%s lacks %q", path, strings.TrimSpace(part))
			}
		}
	}
}
