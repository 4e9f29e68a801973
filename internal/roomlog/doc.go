// Package roomlog keeps the log of rooms: a chain of immutable MessageBatches whose names are numbered, so that creating
// the next name is the compare-and-swap that orders the messages of all writers.
//
// A Book holds the logs that a process has seen, fed by a watch and by the process's own writes. A Committer appends to
// them, one create in flight a room; what arrives meanwhile goes out together in the next (group commit). A create that
// succeeds has seen every batch before it, so the log itself is the receipt by which a repeated message is recognised.
package roomlog
