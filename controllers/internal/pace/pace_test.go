package pace

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestDelay(t *testing.T) {
	clk := clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0))
	p, a, b := New(clk, 0), types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	check := func(key types.NamespacedName, want time.Duration) {
		t.Helper()
		if got := p.Delay(key); got != want {
			t.Errorf("%s waits %s, want %s", key.Name, got, want)
		}
	}
	check(a, 0)
	p.Mark(a)
	check(a, Every)
	check(b, 0)
	clk.SetTime(clk.Now().Add(2 * time.Second))
	check(a, 3*time.Second)
	clk.SetTime(clk.Now().Add(time.Hour))
	check(a, 0)
	p.Mark(a)
	p.Forget(a)
	check(a, 0)
}
