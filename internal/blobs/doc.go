// Package blobs keeps the content of files outside of etcd: in a local folder, or in S3, Google Cloud Storage or Azure Blob
// Storage, by URL.
//
// Content is addressed by its sha256, once a room. The keys in the bucket are
//
//	rooms/<room uid>/content/<sha256>          what files refer to
//	rooms/<room uid>/uploads/<upload id>       what clients uploaded, until it is checked
//	rooms/<room uid>/temp/<random>             what is being written and not yet known by its hash
//	rooms/<room uid>/trash/<sha256>.<random>   content that was collected, for one more grace time
//	system/signing-key                         what signs the transfers of a local folder
//
// # Nothing that is referred to is lost
//
// A writer first puts the content, then writes the reference to it into the API server, within a minute. Put writes the
// content anew unless it is younger than a quarter of the grace time. Sweep takes content only that is older than the
// grace time and that nobody refers to; it copies it into the trash under a name of its own, takes it away, and reads
// the references again: what got one meanwhile is put back. What came even later is found in the trash by whoever reads, and put
// back then. What has lain in the trash for a grace time is deleted if still nobody refers to it. The store's clock and
// ours may differ by minutes, not by a quarter of the grace time. A process that is stopped for that long in the middle of a sweep
// does not go on with what it began.
//
// # What an acknowledgment means
//
// In a local folder each object is written beside its place, flushed to the disk, and renamed into place: half an object is never
// seen, and what was acknowledged survives the end of the process and of the machine, as far as the file system keeps
// what it was told to flush. S3, Google Cloud Storage and Azure give the same by themselves.
package blobs
