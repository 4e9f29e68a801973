// Package backup writes a Room into one archive and restores it from there, in another cluster or after it was lost.
//
// An archive is a compressed tar. Its first entry says the format and its version, its last one is the index: the size and the
// SHA-256 of every other entry, and what there is of each kind. In between stand the objects and the messages as lines of
// JSON, and each content of a file once, under its SHA-256. Nothing in it depends on the cluster that it comes from (UIDs,
// resource versions, creation times, the names that follow from them) or on when it was written, so a room that was restored
// gives the same archive, byte for byte.
//
// What is in an archive is what is so for good. What lasts a moment is not: Leases, presence, uploads that are under way, files
// that were deleted, conditions and counts, which the controllers find anew, and whatever proves who somebody is.
//
// Memory is bounded by the Files and Inboxes of a room and by one segment of messages, whatever its history and the contents of
// its files come to.
package backup
