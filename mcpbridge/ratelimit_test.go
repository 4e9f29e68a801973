package mcpbridge

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

func TestRateLimitsAreReadAsAFlagGivesThem(t *testing.T) {
	more := DefaultRateLimits()
	more[toolset.BucketSend], more[toolset.BucketRead] = 120, 600
	for text, want := range map[string]RateLimits{"on": DefaultRateLimits(), "off": {}, "send=120,read=600": more} {
		got, err := ParseRateLimits(text)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q gives %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "yes", "send", "send=", "send=0", "send=-1", "send=1.5", "send=1,", "shout=1", "send=99999999"} {
		if _, err := ParseRateLimits(text); err == nil || !strings.Contains(err.Error(), "send=120") {
			t.Errorf("%q gives %v, want an error that says what to write", text, err)
		}
	}
}
