package view

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/internal/ids"
)

// FilesTopic is the topic of a room's files.
func FilesTopic(roomID string) string { return "files/" + roomID }

// AnyFileTopic is the topic of files and uploads that appear.
const AnyFileTopic = "files"

// fileIndex finds Files, and knows what they take.
type fileIndex struct {
	byID    map[string]types.NamespacedName
	rooms   map[types.NamespacedName]map[string]*v1alpha1.File
	usage   map[types.NamespacedName]files.Usage
	byKey   map[string]types.NamespacedName
	uploads map[string]types.NamespacedName
}

func newFileIndex() fileIndex {
	return fileIndex{
		byID: map[string]types.NamespacedName{}, rooms: map[types.NamespacedName]map[string]*v1alpha1.File{},
		usage: map[types.NamespacedName]files.Usage{}, byKey: map[string]types.NamespacedName{},
		uploads: map[string]types.NamespacedName{},
	}
}

func roomOfFile(f *v1alpha1.File) types.NamespacedName {
	return types.NamespacedName{Namespace: f.Namespace, Name: f.Spec.RoomRef.Name}
}

func (v *View) onFile(old, next *v1alpha1.File) {
	v.mu.Lock()
	if old != nil {
		v.fileIndex.remove(old)
	}
	if next != nil {
		v.fileIndex.add(next)
	}
	v.mu.Unlock()
	touched := next
	if next == nil {
		touched = old
	}
	if room, ok := v.rooms.get(touched.Namespace, touched.Spec.RoomRef.Name); ok {
		v.Hub.publish(FilesTopic(ids.ID(room)))
	}
	v.Hub.publish(AnyFileTopic)
}

func (x *fileIndex) add(f *v1alpha1.File) {
	k, room := keyOf(f), roomOfFile(f)
	claimID(x.byID, ids.ID(f), ids.NaturalID(f), k)
	if x.rooms[room] == nil {
		x.rooms[room] = map[string]*v1alpha1.File{}
	}
	x.rooms[room][f.Name] = f
	x.count(room, f, 1)
	eachMark(f, func(upload, key string) {
		if upload != "" {
			x.uploads[upload] = k
		}
		if key != "" {
			x.byKey[key] = k
		}
	})
}

func (x *fileIndex) remove(f *v1alpha1.File) {
	k, room := keyOf(f), roomOfFile(f)
	if x.byID[ids.ID(f)] == k {
		delete(x.byID, ids.ID(f))
	}
	if delete(x.rooms[room], f.Name); len(x.rooms[room]) == 0 {
		delete(x.rooms, room)
	}
	x.count(room, f, -1)
	eachMark(f, func(upload, key string) {
		if x.uploads[upload] == k {
			delete(x.uploads, upload)
		}
		if x.byKey[key] == k {
			delete(x.byKey, key)
		}
	})
}

func (x *fileIndex) count(room types.NamespacedName, f *v1alpha1.File, sign int64) {
	one, all := files.UsageOf(f), x.usage[room]
	all.Files += sign * one.Files
	all.Bytes += sign * one.Bytes
	if x.usage[room] = all; all == (files.Usage{}) {
		delete(x.usage, room)
	}
}

// eachMark calls f for each upload and each idempotency key that a File knows.
func eachMark(file *v1alpha1.File, f func(upload, key string)) {
	for i := range file.Spec.Versions {
		f(file.Spec.Versions[i].UploadID, file.Spec.Versions[i].Key)
	}
	for i := range file.Spec.Uploads {
		f(file.Spec.Uploads[i].ID, file.Spec.Uploads[i].Key)
	}
}

// File finds a File by namespace and name.
func (v *View) File(namespace, name string) (*v1alpha1.File, bool) {
	return v.files.get(namespace, name)
}

// FileByID finds a File by its id, or by the id of one of its uploads, which upload tells.
func (v *View) FileByID(id string) (f *v1alpha1.File, upload, ok bool) {
	v.mu.RLock()
	k, isFile := v.fileIndex.byID[id]
	if !isFile {
		k, upload = v.fileIndex.uploads[id]
	}
	v.mu.RUnlock()
	if !isFile && !upload {
		return nil, false, false
	}
	f, ok = v.files.get(k.Namespace, k.Name)
	return f, upload, ok
}

// FileByKey finds the File that was written under an idempotency key (its digest).
func (v *View) FileByKey(key string) (*v1alpha1.File, bool) {
	v.mu.RLock()
	k, ok := v.fileIndex.byKey[key]
	v.mu.RUnlock()
	if !ok {
		return nil, false
	}
	return v.files.get(k.Namespace, k.Name)
}

// Files gives the files of a room, by path.
func (v *View) Files(room *v1alpha1.Room) []*v1alpha1.File {
	v.mu.RLock()
	list := make([]*v1alpha1.File, 0, len(v.fileIndex.rooms[keyOf(room)]))
	for _, f := range v.fileIndex.rooms[keyOf(room)] {
		list = append(list, f)
	}
	v.mu.RUnlock()
	slices.SortFunc(list, func(a, b *v1alpha1.File) int { return strings.Compare(a.Spec.Path, b.Spec.Path) })
	return list
}

// FileUsage gives what the files of a room take.
func (v *View) FileUsage(room *v1alpha1.Room) files.Usage {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.fileIndex.usage[keyOf(room)]
}
