package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

func TestEachCRDIsSmall(t *testing.T) {
	for _, file := range crdFiles(t) {
		info, err := os.Stat(file)
		must(t, err)
		t.Logf("%s: %d bytes", filepath.Base(file), info.Size())
		if info.Size() >= 200<<10 {
			t.Errorf("%s has %d bytes, want less than 200 KiB", filepath.Base(file), info.Size())
		}
	}
}

// TestTheLargestObjectFits fills every field to its bound with the characters that JSON takes the most bytes for, lets the
// API server accept it, and weighs it.
func TestTheLargestObjectFits(t *testing.T) {
	c := server(t)
	fit := map[string]func(t *testing.T, o map[string]any){
		"Agent": func(*testing.T, map[string]any) {}, "Consent": func(*testing.T, map[string]any) {},
		"File": largestFile, "Inbox": largestInbox, "MessageBatch": largestBatch, "Room": largestRoom, "Task": largestTask,
	}
	for kind, crd := range readCRDs(t) {
		t.Run(kind, func(t *testing.T) {
			o := largest(t, schemaOf(crd), "").(map[string]any)
			o["apiVersion"], o["kind"], o["metadata"] = v1alpha1.GroupVersion.String(), kind, map[string]any{}
			fit[kind](t, o)
			raw, err := json.Marshal(o)
			must(t, err)
			u := object(t, string(raw))
			status, hasStatus := u.Object["status"]
			must(t, create(t, c, u))
			if kind == "Task" {
				claimBefore(t, c, u, status.(map[string]any))
			}
			if hasStatus {
				raw, err := json.Marshal(status)
				must(t, err)
				must(t, patchStatus(t, c, u, string(raw)))
			}
			must(t, c.Get(t.Context(), client.ObjectKeyFromObject(u), u))
			raw, err = json.Marshal(u.Object)
			must(t, err)
			t.Logf("%d bytes", len(raw))
			if len(raw) >= 256<<10 {
				t.Errorf("the largest %s has %d bytes, want less than 256 KiB", kind, len(raw))
			}
			if len(raw) < 8<<10 {
				t.Errorf("the largest %s has only %d bytes: is it really the largest?", kind, len(raw))
			}
		})
	}
}

// largest gives the largest value that a schema takes, field by field.
func largest(t *testing.T, s *apiextensionsv1.JSONSchemaProps, path string) any {
	t.Helper()
	switch s.Type {
	case "boolean":
		return path != "spec.archived"
	case "integer":
		if s.Maximum != nil {
			return int64(*s.Maximum)
		}
		if s.Format == "int32" {
			return int64(math.MaxInt32)
		}
		return int64(math.MaxInt64)
	case "array":
		list := make([]any, *s.MaxItems)
		for i := range list {
			list[i] = largest(t, s.Items.Schema, path+"[]")
			if len(s.Items.Schema.Enum) > 0 {
				list[i] = strings.Trim(string(s.Items.Schema.Enum[i].Raw), `"`)
			} else if text, ok := list[i].(string); ok && s.XListType != nil && *s.XListType == "set" {
				list[i] = fmt.Sprintf("%03d", i) + string([]rune(text)[3:])
			}
			if m, ok := list[i].(map[string]any); ok && path == "status.conditions" {
				m["type"] = fmt.Sprintf("%d", i) + m["type"].(string)[1:]
				m["message"] = strings.Repeat("<", 1024)
			}
		}
		return list
	case "object":
		o := map[string]any{}
		for name, p := range s.Properties {
			if path != "" || (name != "apiVersion" && name != "kind" && name != "metadata") {
				o[name] = largest(t, &p, strings.TrimPrefix(path+"."+name, "."))
			}
		}
		if path == "spec.creator" || path == "spec.assignedBy" {
			delete(o, "plate")
		}
		return o
	}
	return largestText(t, s, path)
}

func largestText(t *testing.T, s *apiextensionsv1.JSONSchemaProps, path string) string {
	t.Helper()
	if len(s.Enum) > 0 {
		var best string
		for _, e := range s.Enum {
			if v := strings.Trim(string(e.Raw), `"`); len(v) > len(best) {
				best = v
			}
		}
		return best
	}
	if s.Format == "date-time" {
		if strings.Contains(s.Pattern, `\d{6}`) {
			return "2026-01-01T00:00:00.000000+01:00"
		}
		return "2026-01-01T00:00:00+01:00"
	}
	if s.MaxLength == nil {
		t.Fatalf("%s is not bounded", path)
	}
	n := int(*s.MaxLength)
	// '<' takes six bytes, an emoji four.
	for _, candidate := range []string{strings.Repeat("<", n), strings.Repeat("😀", n), strings.Repeat("a", n), strings.Repeat("0", n), "BRNL-AGT-" + strings.Repeat("0", max(n-9, 0))} {
		if s.Pattern == "" || regexp.MustCompile(s.Pattern).MatchString(candidate) {
			return candidate
		}
	}
	t.Fatalf("nothing here matches the pattern of %s: %s", path, s.Pattern)
	return ""
}

func largestInbox(_ *testing.T, o map[string]any) {
	status := o["status"].(map[string]any)
	status["ackedThrough"] = int64(1)
	for _, list := range []string{"acked", "deliveries", "carried"} {
		for i, item := range status[list].([]any) {
			item.(map[string]any)["seq"] = int64(1<<40 - i)
		}
	}
}

// largestRoom spends the characters that usernames may have together, and fills up with agents.
func largestRoom(_ *testing.T, o map[string]any) {
	left := 32768
	for _, item := range o["spec"].(map[string]any)["members"].([]any) {
		m := item.(map[string]any)
		if left > 253 {
			delete(m, "agent")
			left -= 253
			continue
		}
		delete(m, "user")
		delete(m["agent"].(map[string]any), "plate")
	}
}

// largestBatch spends the characters that bodies may have together, and the mentions.
func largestBatch(_ *testing.T, o map[string]any) {
	spec := o["spec"].(map[string]any)
	spec["number"] = int64(9999999999)
	mentions := v1alpha1.MaxBatchMentions
	for i, item := range spec["messages"].([]any) {
		m := item.(map[string]any)
		m["body"] = strings.Repeat("<", v1alpha1.MaxBatchCharacters/v1alpha1.MaxBatchMessages)
		n := mentions / (v1alpha1.MaxBatchMessages - i)
		m["mentions"] = m["mentions"].([]any)[:n]
		mentions -= n
	}
}

func largestTask(_ *testing.T, o map[string]any) {
	status := o["status"].(map[string]any)
	status["state"], status["epoch"] = "Doing", int64(3)
	status["consent"].(map[string]any)["state"] = "Accepted"
	status["lastClaim"].(map[string]any)["epoch"] = int64(1)
	for _, record := range append(status["contested"].([]any), status["record"]) {
		r := record.(map[string]any)
		for i := range r["artifacts"].([]any) {
			r["artifacts"].([]any)[i] = strings.Repeat("<", v1alpha1.MaxArtifactCharacters/16)
		}
	}
}

// claimBefore makes and ends a claim, so that the status may hold it as the last one.
func claimBefore(t *testing.T, c client.Client, u *unstructured.Unstructured, status map[string]any) {
	t.Helper()
	last := status["lastClaim"].(map[string]any)
	for _, step := range []map[string]any{
		{"state": "Doing", "epoch": 1, "consent": map[string]any{"state": "Auto"}, "claim": map[string]any{"holder": last["holder"]}},
		{"state": "Todo", "epoch": 2, "claim": nil, "lastClaim": last},
	} {
		raw, err := json.Marshal(step)
		must(t, err)
		must(t, patchStatus(t, c, u, string(raw)))
	}
}

// largestFile is written by agents, as all Files are.
func largestFile(_ *testing.T, o map[string]any) {
	spec := o["spec"].(map[string]any)
	for i, item := range spec["versions"].([]any) {
		v := item.(map[string]any)
		v["version"] = int64(9999999999 - i)
		delete(v["by"].(map[string]any), "user")
	}
	for i, item := range spec["uploads"].([]any) {
		u := item.(map[string]any)
		u["id"] = fmt.Sprintf("%026d", i)
		delete(u["by"].(map[string]any), "user")
	}
	delete(spec["deletion"].(map[string]any)["by"].(map[string]any), "user")
}
