package tasks

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

func TestWhatArchivedTasksAreBeyondTheRetention(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ended := func(name string, hours int, archived bool) *v1alpha1.Task {
		return &v1alpha1.Task{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-1000 * time.Hour))},
			Spec:       v1alpha1.TaskSpec{Archived: archived},
			Status:     v1alpha1.TaskStatus{History: []v1alpha1.TaskEvent{{At: metav1.NewTime(now.Add(-time.Duration(hours) * time.Hour))}}},
		}
	}
	leaving := ended("leaving", 90, true)
	leaving.DeletionTimestamp = new(metav1.NewTime(now))
	nobody := func(*v1alpha1.Task) bool { return false }
	for name, c := range map[string]struct {
		list   []*v1alpha1.Task
		limit  int
		needed func(*v1alpha1.Task) bool
		want   []string
		next   time.Time
	}{
		"nothing within the limit":          {[]*v1alpha1.Task{ended("a", 99, true), ended("b", 98, true)}, 2, nobody, nil, time.Time{}},
		"the longest at rest first":         {[]*v1alpha1.Task{ended("a", 70, true), ended("b", 99, true), ended("c", 80, true)}, 1, nobody, []string{"b", "c"}, time.Time{}},
		"what is on the board never counts": {[]*v1alpha1.Task{ended("a", 99, false), ended("b", 98, false), ended("c", 97, true)}, 1, nobody, nil, time.Time{}},
		"what is being deleted never":       {[]*v1alpha1.Task{leaving, ended("b", 50, true)}, 1, nobody, nil, time.Time{}},
		"one that rests for 25 hours only":  {[]*v1alpha1.Task{ended("a", 25, true), ended("b", 24, true), ended("c", 1, true)}, 1, nobody, []string{"a"}, now.Add(time.Hour)},
		"what is needed stays": {
			[]*v1alpha1.Task{ended("a", 99, true), ended("b", 98, true), ended("c", 97, true)}, 1,
			func(t *v1alpha1.Task) bool { return t.Name == "a" }, []string{"b"}, time.Time{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			over, next := Beyond(c.list, c.limit, Rest, c.needed, now)
			var names []string
			for _, task := range over {
				names = append(names, task.Name)
			}
			if diff := cmp.Diff(c.want, names); diff != "" || !next.Equal(c.next) {
				t.Errorf("next at %v, want %v; (-want +got):\n%s", next, c.next, diff)
			}
		})
	}
}

func TestHowManyArchivedTasksStay(t *testing.T) {
	for want, r := range map[int]*v1alpha1.RoomRetention{1000: nil, 7: {ArchivedTasks: 7}} {
		if got := ArchivedLimit(r); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
	if got := ArchivedLimit(&v1alpha1.RoomRetention{}); got != 1000 {
		t.Errorf("%d, want 1000", got)
	}
}
