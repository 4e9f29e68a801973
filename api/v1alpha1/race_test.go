package v1alpha1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

// racers claim one task at the same instant, rounds times over.
const (
	racers = 32
	rounds = 3
)

// TestAClaimHasOneWinnerHoweverCarelessTheWriters lets many write a claim at once, each from what it saw before the race,
// in every way there is to write. The last two ways know no resourceVersion: there the schema alone decides.
func TestAClaimHasOneWinnerHoweverCarelessTheWriters(t *testing.T) {
	c := server(t)
	for _, way := range []struct {
		name  string
		write func(ctx context.Context, task *v1alpha1.Task, holder string) error
	}{
		{"update with a resourceVersion", func(ctx context.Context, task *v1alpha1.Task, holder string) error {
			mine := task.DeepCopy()
			mine.Status.State, mine.Status.Epoch = v1alpha1.TaskDoing, task.Status.Epoch+1
			mine.Status.Consent = &v1alpha1.TaskConsent{State: v1alpha1.ConsentAuto}
			mine.Status.Claim = &v1alpha1.TaskClaim{Holder: holder}
			return c.Status().Update(ctx, mine)
		}},
		{"merge patch without a lock", func(ctx context.Context, task *v1alpha1.Task, holder string) error {
			body := fmt.Appendf(nil, `{"status": %s}`, claim(task.Status.Epoch+1, holder))
			return c.Status().Patch(ctx, task.DeepCopy(), client.RawPatch(types.MergePatchType, body))
		}},
		{"forced server-side apply", func(ctx context.Context, task *v1alpha1.Task, holder string) error {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Task"))
			u.SetNamespace(task.Namespace)
			u.SetName(task.Name)
			status := map[string]any{}
			if err := json.Unmarshal([]byte(claim(task.Status.Epoch+1, holder)), &status); err != nil {
				return err
			}
			u.Object["status"] = status
			return c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(holder), client.ForceOwnership)
		}},
	} {
		t.Run(way.name, func(t *testing.T) {
			key := client.ObjectKeyFromObject(plain(t, c))
			var epoch int64
			for round := range rounds {
				task := &v1alpha1.Task{}
				must(t, c.Get(t.Context(), key, task))
				if task.Status.Epoch < epoch {
					t.Fatalf("round %d: the epoch went back from %d to %d", round, epoch, task.Status.Epoch)
				}
				winners := race(t, task, way.write)
				if len(winners) != 1 {
					t.Fatalf("round %d: winners are %v, want exactly one", round, winners)
				}
				must(t, c.Get(t.Context(), key, task))
				if task.Status.Claim == nil || task.Status.Claim.Holder != winners[0] {
					t.Fatalf("round %d: the claim is %v, want it with %s", round, task.Status.Claim, winners[0])
				}
				if want := epoch + 1; task.Status.Epoch != want {
					t.Fatalf("round %d: epoch is %d, want %d", round, task.Status.Epoch, want)
				}
				task.Status.State, task.Status.Claim = v1alpha1.TaskTodo, nil
				task.Status.Epoch++
				must(t, c.Status().Update(t.Context(), task))
				epoch = task.Status.Epoch
			}
		})
	}
}

func claim(epoch int64, holder string) string {
	return fmt.Sprintf(`{"state": "Doing", "epoch": %d, "consent": {"state": "Auto"}, "claim": {"holder": %q}}`, epoch, holder)
}

// race starts all racers at once and gives those that were told they won. The others must have been refused as one is who
// came too late: with a conflict, or by the claim rule.
func race(
	t *testing.T, task *v1alpha1.Task, write func(ctx context.Context, task *v1alpha1.Task, holder string) error,
) []string {
	t.Helper()
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		winners []string
	)
	start := make(chan struct{})
	for i := range racers {
		wg.Go(func() {
			holder := fmt.Sprintf("racer-%d", i)
			<-start
			err := write(t.Context(), task, holder)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				winners = append(winners, holder)
			case apierrors.IsConflict(err):
			case apierrors.IsInvalid(err) && (strings.Contains(err.Error(), "already claimed") || strings.Contains(err.Error(), "somebody else was faster")):
			default:
				t.Errorf("%s was refused for another reason than being late: %v", holder, err)
			}
		})
	}
	close(start)
	wg.Wait()
	return winners
}

// A writer that slept through a whole claim and comes back with what it knew cannot take the epoch back.
func TestAStaleWriterCannotTurnTheEpochBack(t *testing.T) {
	c := server(t)
	u := plain(t, c, claimed, "{state: Todo, epoch: 2, claim: null}", "{state: Doing, epoch: 3, claim: {holder: bob}}")
	for _, tc := range []struct{ name, status, refused string }{
		{"to claim as it would have then", claim(1, "alice"), "already claimed"},
		{"to claim after the one it knows of", claim(3, "alice"), "already claimed"},
		{"to release what it held", "{state: Todo, epoch: 2, claim: null}", "somebody else was faster"},
		{"to finish what it held", "{state: Done, epoch: 2, claim: null}", "somebody else was faster"},
	} {
		t.Run(tc.name, func(t *testing.T) { check(t, patchStatus(t, c, u, tc.status), tc.refused) })
	}
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(u), u))
	if epoch := get(u.Object, "status.epoch"); epoch != int64(3) {
		t.Errorf("epoch is %v, want 3", epoch)
	}
}
