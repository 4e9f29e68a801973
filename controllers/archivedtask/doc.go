// Package archivedtask moves the archived tasks that are beyond a Room's retention to the blob store, so that the cluster holds
// no more of them than the room says. A task is written and read back before its object goes, and the object goes only as it was
// written: by UID and resourceVersion.
package archivedtask
