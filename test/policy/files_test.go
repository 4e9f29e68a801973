package policy_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Why users are refused what only the bridge does to files.
const (
	noCreate  = "a File is made by writing it through the bridge"
	noDelete  = "deleting the object would lose the content at once"
	noContent = "spec.versions and spec.uploads are written by the bridge"
	noForgery = "spec.deletion.by must be the one who deletes"
	noFuture  = "spec.deletion.throughVersion may be the latest version at most"
	noOwner   = "metadata.ownerReferences name the room"
)

func TestAFileIsMadeAndUnmadeByTheSystem(t *testing.T) {
	env := server(t)
	ns := env.Namespace(t)
	for _, tc := range []struct{ user, create, remove string }{
		{said, noCreate, noDelete}, {maya, noCreate, noDelete}, {assigner, noCreate, noDelete},
		{bridge, "", ""}, {manager, "", ""}, {restorer, "", ""}, {collector, "", ""}, {namespaces, "", ""},
	} {
		t.Run(tc.user+" "+verdict(tc.create)+" create", func(t *testing.T) {
			check(t, as(tc.user).Create(t.Context(), parse(ns, file)), tc.create)
		})
		t.Run(tc.user+" "+verdict(tc.remove)+" delete", func(t *testing.T) {
			check(t, as(tc.user).Delete(t.Context(), made(t, env, parse(ns, file))), tc.remove)
		})
		t.Run(tc.user+" "+verdict(tc.remove)+" delete with others", func(t *testing.T) {
			u := made(t, env, parse(ns, file, "metadata: {labels: {batch: of-"+counterName()+"}}"))
			check(t, as(tc.user).DeleteAllOf(t.Context(), u, client.InNamespace(ns), client.MatchingLabels(u.GetLabels())), tc.remove)
		})
	}
}

// deletion gives a change that deletes a file in somebody's name.
func deletion(by string, through int) string {
	return fmt.Sprintf("spec: {deletion: {throughVersion: %d, by: %s, at: '2026-01-01T00:00:00.000000Z'}}", through, by)
}

func TestWhatAFileSaysOfItsContentIsWrittenByTheSystem(t *testing.T) {
	env := server(t)
	ns := env.Namespace(t)
	version := func(number int, sha string) string {
		return fmt.Sprintf("{version: %d, sha256: %s, size: 1, contentType: text/plain, by: {user: said}, at: '2026-01-01T00:00:00.000000Z'}", number, sha)
	}
	const sha = "'0000000000000000000000000000000000000000000000000000000000000000'"
	upload := "spec: {uploads: [{id: 01K00000000000000000000000, state: Pending, sha256: " + sha + ", size: 1, contentType: text/plain, " +
		"by: {user: said}, at: '2026-01-01T00:00:00.000000Z', expiresAt: '2026-01-01T00:00:00.000000Z'}]}"
	for _, tc := range []struct{ name, user, change, refused string }{
		{"put another content in place", said, "spec: {versions: [" + version(2, sha) + "]}", noContent},
		{"add a version", said, "spec: {versions: [" + version(3, sha) + ", " + version(2, sha) + "]}", noContent},
		{"announce an upload", said, upload, noContent},
		{"hand it to the garbage collector", said, "metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: gone, uid: gone}]}", noOwner},
		{"label it", said, "metadata: {labels: {seen: 'true'}}", ""},
		{"delete it", said, deletion("{user: said}", 2), ""},
		{"delete an earlier version", said, deletion("{user: said}", 1), ""},
		{"delete it in somebody's name", said, deletion("{user: maya}", 2), noForgery},
		{"delete it in an agent's name", said, deletion("{plate: "+plate+"}", 2), noForgery},
		{"delete what will be written", said, deletion("{user: said}", 3), noFuture},
		{"delete it in somebody's name", assigner, deletion("{user: maya}", 2), noForgery},
		{"put another content in place", bridge, "spec: {versions: [" + version(2, sha) + "]}", ""},
		{"add a version", bridge, "spec: {versions: [" + version(3, sha) + ", " + version(2, sha) + "]}", ""},
		{"announce an upload", bridge, upload, ""},
		{"delete it in an agent's name", bridge, deletion("{plate: "+plate+"}", 2), ""},
		{"add a version", manager, "spec: {versions: [" + version(3, sha) + ", " + version(2, sha) + "]}", ""},
		{"put another content in place", restorer, "spec: {versions: [" + version(2, sha) + "]}", ""},
		{"delete it in somebody's name", restorer, deletion("{user: maya}", 2), ""},
	} {
		t.Run(tc.user+" "+verdict(tc.refused)+" "+tc.name, func(t *testing.T) {
			check(t, patch(t.Context(), tc.user, made(t, env, parse(ns, file)), tc.change), tc.refused)
		})
	}
}

func TestADeletedFileCanBeBroughtBackAndNotBlamedOnOthers(t *testing.T) {
	env := server(t)
	ns := env.Namespace(t)
	before := deletion("{plate: "+plate+"}", 2)
	for _, tc := range []struct{ name, user, change, refused string }{
		{"bring it back", said, "spec: {deletion: null}", ""},
		{"leave the deletion as it is", said, "metadata: {labels: {seen: 'true'}}", ""},
		{"take the deletion over", said, "spec: {deletion: {by: {plate: null, user: said}}}", ""},
		{"change its time in the agent's name", said, "spec: {deletion: {at: '2020-01-01T00:00:00.000000Z'}}", noForgery},
		{"blame somebody else", said, "spec: {deletion: {by: {plate: null, user: maya}}}", noForgery},
	} {
		t.Run(tc.user+" "+verdict(tc.refused)+" "+tc.name, func(t *testing.T) {
			u := made(t, env, parse(ns, file, before))
			check(t, patch(t.Context(), tc.user, u, tc.change), tc.refused)
		})
	}
	t.Run("who wrote and who deleted stays as the bridge says", func(t *testing.T) {
		u := parse(ns, file, before)
		must(t, as(bridge).Create(t.Context(), u))
		must(t, patch(t.Context(), said, u, "metadata: {labels: {seen: 'true'}}"))
		must(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(u), u))
		versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
		deleter, _, _ := unstructured.NestedMap(u.Object, "spec", "deletion", "by")
		want := []any{byPlate(plate), byPlate(plate)}
		if diff := cmp.Diff(want, []any{versions[0].(map[string]any)["by"], deleter}); diff != "" {
			t.Errorf("writer and deleter (-want +got):\n%s", diff)
		}
	})
}
