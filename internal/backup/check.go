package backup

import (
	"context"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/ids"
)

// check refuses what cannot be restored before anything is written.
func (im *restore) check(ctx context.Context, from io.ReadSeeker) error {
	names, err := im.names(ctx)
	if err != nil {
		return err
	}
	agents, err := im.knownAgents(ctx)
	if err != nil {
		return err
	}
	err = im.again(from, im.lookedAt(agents, names))
	if err != nil {
		return err
	}
	if im.wanted == nil || im.wanted.Name != im.index.Room || im.wanted.Annotations[v1alpha1.IDAnnotation] != im.index.ID {
		return fmt.Errorf("%w: its room is not the one of its index", ErrDamaged)
	}
	return im.vacant(ctx)
}

// lookedAt holds the entries of an archive against what the cluster has.
func (im *restore) lookedAt(agents agents, names taken) func(string, int64, io.Reader) error {
	return func(name string, size int64, r io.Reader) (err error) {
		switch {
		case name == roomEntry:
			im.wanted, err = decode[v1alpha1.Room](name, size, r)
		case name == agentsEntry:
			return checkLines(name, size, r, func(a *v1alpha1.Agent) error { return agents.fits(a, im.Namespace) })
		case name == consentsEntry:
			return checkLines(name, size, r, func(c *v1alpha1.Consent) error { return names.free("Consent", c) })
		case strings.HasPrefix(name, tasksDir):
			return checkLines(name, size, r, func(t *v1alpha1.Task) error {
				if err := plausible(&t.Status); err != nil {
					return err
				}
				return names.free("Task", t)
			})
		}
		return err
	}
}

func checkLines[T any](name string, size int64, r io.Reader, check func(*T) error) error {
	items, err := decodeLines[T](name, size, r)
	if err != nil {
		return err
	}
	for i := range items {
		if err := check(&items[i]); err != nil {
			return err
		}
	}
	return nil
}

// vacant refuses a room whose name or id is taken, unless by an import of the same archive that did not finish.
func (im *restore) vacant(ctx context.Context) error {
	var rooms v1alpha1.RoomList
	if err := im.Client.List(ctx, &rooms); err != nil {
		return fmt.Errorf("listing rooms: %w", err)
	}
	for i := range rooms.Items {
		room := &rooms.Items[i]
		switch here := room.Namespace == im.Namespace && room.Name == im.index.Room; {
		case here:
			return im.mine(room)
		case ids.ID(room) == im.index.ID:
			return fmt.Errorf("the room of this archive is there already: %s in the namespace %s has its id %s",
				room.Name, room.Namespace, im.index.ID)
		}
	}
	return im.cleared(ctx)
}

// mine says whether a room is that of an import of the same archive.
func (im *restore) mine(room *v1alpha1.Room) error {
	switch of := room.Annotations[v1alpha1.RestoringAnnotation]; of {
	case im.index.Digest():
		return nil
	case "":
		return fmt.Errorf("there is a room %s in the namespace %s already: nothing was changed", room.Name, room.Namespace)
	default:
		return fmt.Errorf("an import of another archive into room %s in the namespace %s did not finish: make it again with that archive "+
			"(index %.12s), or delete the room and its tasks and consents first", room.Name, room.Namespace, of)
	}
}

// present gives the room that stands in the way of creating it, if it is our own.
func (im *restore) present(ctx context.Context) (*v1alpha1.Room, error) {
	room := &v1alpha1.Room{}
	key := client.ObjectKey{Namespace: im.Namespace, Name: im.index.Room}
	if err := im.Client.Get(ctx, key, room); err != nil {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	return room, im.mine(room)
}

// cleared refuses to mix the room with what one of its name has left: tasks and consents stay when a room is deleted.
func (im *restore) cleared(ctx context.Context) error {
	for _, l := range []client.ObjectList{&v1alpha1.TaskList{}, &v1alpha1.ConsentList{}} {
		err := im.Client.List(ctx, l, client.InNamespace(im.Namespace), client.MatchingFields{"spec.roomRef.name": im.index.Room}, client.Limit(1))
		if err != nil {
			return fmt.Errorf("looking for what is left of a room %s: %w", im.index.Room, err)
		}
		if n := itemsOf(l); n > 0 {
			return fmt.Errorf("tasks or consents of a former room %s are left in the namespace %s: delete those whose spec.roomRef.name is %s first",
				im.index.Room, im.Namespace, im.index.Room)
		}
	}
	return nil
}

func itemsOf(l client.ObjectList) int {
	switch l := l.(type) {
	case *v1alpha1.TaskList:
		return len(l.Items)
	case *v1alpha1.ConsentList:
		return len(l.Items)
	}
	return 0
}

// taken are the names of tasks and consents that the namespace has, with their ids.
type taken map[string]string

func (im *restore) names(ctx context.Context) (taken, error) {
	all := taken{}
	for _, kind := range []string{"Task", "Consent"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
		if err := im.Client.List(ctx, list, client.InNamespace(im.Namespace)); err != nil {
			return nil, fmt.Errorf("listing the names that are taken: %w", err)
		}
		for i := range list.Items {
			all[kind+"/"+list.Items[i].Name] = ids.ID(&list.Items[i])
		}
	}
	return all, nil
}

// free refuses an object whose name another one has.
func (n taken) free(kind string, o metav1.Object) error {
	if id, is := n[kind+"/"+o.GetName()]; is && id != o.GetAnnotations()[v1alpha1.IDAnnotation] {
		return fmt.Errorf("the %s %s of the archive cannot be restored: the namespace has another one of that name", kind, o.GetName())
	}
	return nil
}

// agents are those that the cluster has.
type agents struct {
	byPlate map[string]client.ObjectKey
	byName  map[client.ObjectKey]string
}

func (im *restore) knownAgents(ctx context.Context) (agents, error) {
	a := agents{byPlate: map[string]client.ObjectKey{}, byName: map[client.ObjectKey]string{}}
	var list v1alpha1.AgentList
	if err := im.Client.List(ctx, &list); err != nil {
		return a, fmt.Errorf("listing agents: %w", err)
	}
	for i := range list.Items {
		key, plate := client.ObjectKeyFromObject(&list.Items[i]), ids.Plate(&list.Items[i])
		a.byPlate[plate], a.byName[key] = key, plate
	}
	return a, nil
}

// fits refuses an Agent whose name another one has, or whose plate the cluster knows under another name in the room's
// namespace: the room's members are named there.
func (a agents) fits(wanted *v1alpha1.Agent, namespace string) error {
	key, plate := placeOf(wanted, namespace), ids.Plate(wanted)
	if other, is := a.byName[key]; is && other != plate {
		return fmt.Errorf("the agent %s of the archive cannot be restored: the namespace %s has another one of that name, with the plate %s",
			key.Name, key.Namespace, other)
	}
	if at, is := a.byPlate[plate]; is && at != key {
		return fmt.Errorf("the agent %s of the archive is there already, as %s in the namespace %s: import into the namespace that it is in, or delete it first",
			key.Name, at.Name, at.Namespace)
	}
	return nil
}

func placeOf(a *v1alpha1.Agent, namespace string) client.ObjectKey {
	if a.Namespace != "" {
		namespace = a.Namespace
	}
	return client.ObjectKey{Namespace: namespace, Name: a.Name}
}

// create makes an object. One that is there is taken when it is the same, as its id tells; want is read into it then.
func (im *restore) create(ctx context.Context, o client.Object) error {
	wanted := o.GetAnnotations()[v1alpha1.IDAnnotation]
	owned(o, im.room)
	err := im.Client.Create(ctx, o)
	if apierrors.IsAlreadyExists(err) {
		if err = im.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err == nil && idOf(o) != wanted {
			err = fmt.Errorf("there is another one, with the id %s", idOf(o))
		}
	}
	if err != nil {
		return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
	}
	return nil
}

// idOf gives what the annotation of an object would be in an archive.
func idOf(o client.Object) string {
	switch o := o.(type) {
	case *v1alpha1.Agent:
		return ids.Plate(o)
	case *v1alpha1.Inbox:
		return ""
	default:
		return ids.ID(o)
	}
}
