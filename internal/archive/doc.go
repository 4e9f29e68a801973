// Package archive keeps the part of rooms' logs that has left the cluster: segments of 1,000 messages in a blob store, as
// compressed lines of JSON.
//
// The index is the name: the segment of a seq is computed, not looked up. What cannot be computed (checksum, times) stands
// in the first line of the segment, so there is no object that two writers could spoil for each other, and a message costs
// one read. How far the archive goes stands in Room.status.archive.
package archive
