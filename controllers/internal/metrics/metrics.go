// Package metrics holds what the controllers count, beside what controller-runtime counts by itself.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

var (
	// LeaseExpiries counts leases that ran out, by what was done about it: Reopen or MarkStale.
	LeaseExpiries = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentrooms_lease_expiries_total",
		Help: "Leases of tasks that ran out, by what was done about it.",
	}, []string{"action"})

	// ConsentsDecided counts proposals that were decided, by the state they came to: Accepted or Rejected.
	ConsentsDecided = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentrooms_consents_decided_total",
		Help: "Proposals that were decided, in person or by a Consent, by the state they came to.",
	}, []string{"state"})

	// NoticesPosted counts notices about tasks posted to rooms, by kind.
	NoticesPosted = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentrooms_notices_posted_total",
		Help: "Notices about tasks that were posted to rooms, by kind.",
	}, []string{"kind"})

	// FilesCollected counts what was taken out of files because it was over, by sort.
	FilesCollected = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentrooms_files_collected_total",
		Help: "What was taken out of files because it was over, by sort: version, upload, content (objects of the store).",
	}, []string{"sort"})

	// FileBytesCollected counts the bytes of content that was deleted because nothing referred to it.
	FileBytesCollected = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "agentrooms_files_collected_bytes_total",
		Help: "Bytes of content that were deleted from the store because nothing referred to them.",
	})

	// FileSweeps counts the sweeps of a room's content, by result.
	FileSweeps = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentrooms_file_sweeps_total",
		Help: "Sweeps of a room's content by result: ok, failed.",
	}, []string{"result"})

	// ArchiveSegments counts segments of messages that moved to the blob store.
	ArchiveSegments = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "agentrooms_archive_segments_total",
		Help: "Segments of old messages that moved to the blob store.",
	})

	// ArchiveBytes counts the bytes that they have there.
	ArchiveBytes = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "agentrooms_archive_bytes_total",
		Help: "Bytes of old messages that moved to the blob store, as they stand there.",
	})

	// ArchiveMessages counts the messages in them.
	ArchiveMessages = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "agentrooms_archive_messages_total",
		Help: "Old messages that moved to the blob store.",
	})

	// ArchiveDeleted counts the message batches that were deleted when their messages had moved.
	ArchiveDeleted = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "agentrooms_archive_objects_deleted_total",
		Help: "Message batches that were deleted after their messages had moved to the blob store.",
	})

	// ArchiveTasks counts archived tasks that moved to the blob store.
	ArchiveTasks = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "agentrooms_archive_tasks_total",
		Help: "Archived tasks that moved to the blob store.",
	})

	// ArchiveFailures counts what went wrong, by step: read, write, carry, status or delete.
	ArchiveFailures = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentrooms_archive_failures_total",
		Help: "Steps of moving old messages and archived tasks to the blob store that failed, by step. All are tried again.",
	}, []string{"step"})
)

func init() {
	metrics.Registry.MustRegister(
		LeaseExpiries, ConsentsDecided, NoticesPosted, FilesCollected, FileBytesCollected, FileSweeps,
		ArchiveSegments, ArchiveBytes, ArchiveMessages, ArchiveDeleted, ArchiveTasks, ArchiveFailures)
	// A series that is there from the start shows its first increment to those who watch rates.
	for counter, labels := range map[*prometheus.CounterVec][]string{
		LeaseExpiries:   {string(v1alpha1.LeaseReopen), string(v1alpha1.LeaseMarkStale)},
		ConsentsDecided: {string(v1alpha1.ConsentAccepted), string(v1alpha1.ConsentRejected)},
		NoticesPosted:   {"assigned", "proposed", "rejected", "unblocked"},
		FilesCollected:  {"version", "upload", "content"},
		FileSweeps:      {"ok", "failed"},
		ArchiveFailures: {"read", "write", "carry", "status", "delete"},
	} {
		for _, label := range labels {
			counter.WithLabelValues(label)
		}
	}
}
