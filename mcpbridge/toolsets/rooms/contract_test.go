package rooms

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

type contractParam struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"`
	Required bool     `json:"required"`
	Enum     []string `json:"enum"`
}

type contractTool struct {
	Name   string          `json:"name"`
	Params []contractParam `json:"params"`
}

func contract(t *testing.T) []contractTool {
	t.Helper()
	raw, err := os.ReadFile("testdata/rooms.json")
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Tools []contractTool `json:"tools"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	return c.Tools
}

func TestEveryToolOfTheContractIsThereWithItsParameters(t *testing.T) {
	tools := (&Toolset{}).table()
	for _, want := range contract(t) {
		i := slices.IndexFunc(tools, func(tool toolset.Tool) bool { return tool.Name == want.Name })
		if i < 0 {
			t.Errorf("tool %s is missing", want.Name)
			continue
		}
		checkParams(t, &tools[i], want)
	}
}

func checkParams(t *testing.T, tool *toolset.Tool, want contractTool) {
	t.Helper()
	params := tool.AllParams()
	for _, p := range want.Params {
		i := slices.IndexFunc(params, func(have toolset.Param) bool { return have.Name == p.Name })
		if i < 0 {
			t.Errorf("%s: parameter %s is missing", tool.Name, p.Name)
			continue
		}
		have := params[i]
		kind := string(have.Type)
		if have.Nullable {
			kind += ",null"
		}
		if kind != p.Type || have.Required != p.Required || !slices.Equal(have.Enum, p.Enum) {
			t.Errorf("%s: parameter %s is %s, required %t, enum %v; want %s, %t, %v",
				tool.Name, p.Name, kind, have.Required, have.Enum, p.Type, p.Required, p.Enum)
		}
	}
	for _, have := range params {
		known := slices.ContainsFunc(want.Params, func(p contractParam) bool { return p.Name == have.Name })
		if have.Required && !known {
			t.Errorf("%s: parameter %s is required and not in the contract", tool.Name, have.Name)
		}
	}
}

func TestEveryToolTakesTheSessionHintsAndHasAnOutputSchema(t *testing.T) {
	for _, tool := range (&Toolset{}).table() {
		if !tool.Hints {
			t.Errorf("%s does not take the session hints", tool.Name)
		}
		if tool.Output["type"] != "object" || tool.Output["properties"] == nil {
			t.Errorf("%s has no output schema: %v", tool.Name, tool.Output)
		}
		if tool.Scope == "" || tool.Bucket == "" || tool.Description == "" {
			t.Errorf("%s lacks scope, bucket or description", tool.Name)
		}
	}
}
