package v1alpha1_test

// What a bound counts.
const (
	characters = "characters"
	items      = "items"
	value      = "value"
)

// oneVersion leaves a File its latest version only.
const oneVersion = `
spec:
  versions:
  - version: 2
    sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
    size: 0
    contentType: text/markdown
    by: {user: said}
    at: "2026-01-01T00:00:00.000000Z"
`

// bound says how long a string or list, or how large a number, may be. A minimum of zero means there is none, except for a
// value.
type bound struct {
	path     string
	counts   string
	min, max int64
	// with is what must be changed too, so that nothing but the bound stands in the way.
	with string
}

// bounds of every field that has one. TestTheTablesNameEveryBound holds them against the schema.
var bounds = map[string][]bound{
	"Agent": {
		{"spec.displayName", characters, 1, 64, ""},
		{"spec.owner", characters, 1, 253, ""},
		{"spec.scopes", items, 0, 5, ""},
		{"spec.delegations", items, 0, 1, ""},
		{"spec.subjects", items, 0, 16, ""},
		{"spec.subjects[].name", characters, 1, 253, ""},
		{"spec.subjects[].namespace", characters, 1, 63, ""},
		{"status.plate", characters, 0, 35, ""},
		{"status.conditions", items, 0, 8, ""},
	},
	"Consent": {
		{"spec.roomRef.name", characters, 1, 63, ""},
		{"spec.owner", characters, 1, 253, ""},
		{"spec.collaborators", items, 0, 64, ""},
		{"spec.collaborators[]", characters, 1, 253, ""},
		{"status.conditions", items, 0, 8, ""},
	},
	"File": {
		{"spec.roomRef.name", characters, 1, 63, ""},
		{"spec.path", characters, 1, 512, ""},
		{"spec.versions", items, 0, 128, ""},
		{"spec.versions[].sha256", characters, 64, 64, ""},
		{"spec.versions[].size", value, 0, 5 << 40, ""},
		{"spec.versions[].contentType", characters, 1, 127, ""},
		{"spec.versions[].key", characters, 0, 43, ""},
		{"spec.versions[].payload", characters, 0, 43, ""},
		{"spec.versions[].version", value, 1, 9999999999, oneVersion},
		{"spec.versions[].uploadID", characters, 0, 26, ""},
		{"spec.versions[].by.user", characters, 1, 253, ""},
		{"spec.versions[].by.plate", characters, 35, 35, ""},
		{"spec.uploads", items, 0, 16, ""},
		{"spec.uploads[].sha256", characters, 64, 64, ""},
		{"spec.uploads[].size", value, 0, 5 << 40, ""},
		{"spec.uploads[].contentType", characters, 1, 127, ""},
		{"spec.uploads[].key", characters, 0, 43, ""},
		{"spec.uploads[].payload", characters, 0, 43, ""},
		{"spec.uploads[].id", characters, 26, 26, ""},
		{"spec.uploads[].reason", characters, 0, 256, ""},
		{"spec.uploads[].by.user", characters, 1, 253, ""},
		{"spec.uploads[].by.plate", characters, 35, 35, ""},
		{"spec.deletion.throughVersion", value, 1, 9999999999, ""},
		{"spec.deletion.by.user", characters, 1, 253, ""},
		{"spec.deletion.by.plate", characters, 35, 35, "spec: {deletion: {by: {user: null}}}"},
	},
	"Inbox": {
		{"spec.roomRef.name", characters, 1, 63, ""},
		{"spec.plate", characters, 35, 35, ""},
		{"status.lastReadSeq", value, 0, 1 << 40, ""},
		{"status.ackedThrough", value, 0, 1 << 40, "status: {acked: null, deliveries: null, carried: null}"},
		{"status.deliveredThrough", value, 0, 1 << 40, ""},
		{"status.acked", items, 0, 512, ""},
		{"status.acked[].seq", value, 1, 1 << 40, "status: {ackedThrough: 0}"},
		{"status.acked[].index", value, 0, 49, ""},
		{"status.deliveries", items, 0, 128, ""},
		{"status.deliveries[].seq", value, 1, 1 << 40, "status: {ackedThrough: 0}"},
		{"status.deliveries[].index", value, 0, 49, ""},
		{"status.deliveries[].session", characters, 1, 64, ""},
		{"status.carried", items, 0, 1024, ""},
		{"status.carried[].seq", value, 1, 1 << 40, "status: {ackedThrough: 0}"},
		{"status.carried[].index", value, 0, 49, ""},
		{"status.carried[].session", characters, 0, 64, ""},
	},
	"MessageBatch": {
		{"spec.roomRef.name", characters, 1, 63, ""},
		{"spec.number", value, 1, 9999999999, ""},
		{"spec.firstSeq", value, 1, 1<<40 - 64, ""},
		{"spec.writer", characters, 1, 64, ""},
		{"spec.messages", items, 1, 64, ""},
		{"spec.messages[].sender.id", characters, 1, 253, ""},
		{"spec.messages[].sender.name", characters, 0, 64, ""},
		{"spec.messages[].body", characters, 1, 8000, ""},
		{"spec.messages[].mentions", items, 0, 50, ""},
		{"spec.messages[].mentions[].plate", characters, 35, 35, ""},
		{"spec.messages[].mentions[].session", characters, 0, 64, ""},
		{"spec.messages[].mentions[].taskRef", characters, 0, 63, ""},
		{"spec.messages[].parentID", characters, 0, 26, ""},
		{"spec.messages[].fileRef", characters, 0, 26, ""},
		{"spec.messages[].key", characters, 0, 43, ""},
		{"spec.messages[].payload", characters, 0, 43, ""},
	},
	"Room": {
		{"spec.displayName", characters, 1, 128, ""},
		{"spec.description", characters, 0, 2048, ""},
		{"spec.members", items, 0, 256, ""},
		{"spec.members[].user", characters, 1, 253, ""},
		{"spec.members[].agent.name", characters, 1, 63, ""},
		{"spec.members[].agent.plate", characters, 35, 35, ""},
		{"spec.leasePolicy.durationSeconds", value, 10, 86400, ""},
		{"spec.retention.messages.maxCount", value, 100, 1000000, ""},
		{"spec.retention.messages.maxAgeSeconds", value, 3600, 315360000, ""},
		{"spec.retention.fileVersions", value, 1, 100, ""},
		{"spec.retention.archivedTasks", value, 1, 100000, ""},
		{"spec.limits.openTasks", value, 1, 100000, ""},
		{"spec.limits.files", value, 1, 100000, ""},
		{"spec.limits.fileBytes", value, 1, 1 << 50, ""},
		{"status.id", characters, 0, 26, ""},
		{"status.archive.throughSeq", value, 1, 1 << 40, ""},
		{"status.archive.throughBatch", value, 0, 9999999999, ""},
		{"status.archive.throughBatchSeq", value, 0, 1 << 40, ""},
		{"status.archive.segments", value, 0, 1099511627, ""},
		{"status.archive.bytes", value, 0, 1 << 50, ""},
		{"status.conditions", items, 0, 8, ""},
	},
	"Task": {
		{"spec.roomRef.name", characters, 1, 63, ""},
		{"spec.title", characters, 1, 256, ""},
		{"spec.detail", characters, 0, 8000, ""},
		{"spec.definitionOfDone", characters, 1, 2000, ""},
		{"spec.assignee", characters, 1, 63, ""},
		{"spec.order", value, -1000000000, 1000000000, ""},
		{"spec.priority", value, 0, 100, ""},
		{"spec.type", characters, 0, 32, ""},
		{"spec.dependsOn", items, 0, 32, ""},
		{"spec.dependsOn[]", characters, 1, 63, ""},
		{"spec.creator.user", characters, 1, 253, ""},
		{"spec.creator.plate", characters, 35, 35, "spec: {creator: {user: null}}"},
		{"spec.assignedBy.user", characters, 1, 253, "spec: {assignedBy: {plate: null}}"},
		{"spec.assignedBy.plate", characters, 35, 35, ""},
		{"spec.decision.reason", characters, 0, 500, ""},
		{"spec.decision.terms", characters, 0, 43, ""},
		{"spec.decision.by", characters, 0, 253, ""},
		{"spec.intervention.id", characters, 1, 64, ""},
		{"spec.intervention.reason", characters, 0, 300, "spec: {intervention: {action: Release}}"},
		{"spec.intervention.epoch", value, 0, 1<<31 - 1, ""},
		{"spec.intervention.by", characters, 0, 253, ""},
		{"spec.leaseDurationSeconds", value, 10, 86400, ""},
		{"status.consent.assignee", characters, 0, 35, ""},
		{"status.consent.by", characters, 0, 253, ""},
		{"status.consent.terms", characters, 0, 43, ""},
		{"status.consent.reason", characters, 0, 500, ""},
		{"status.claim.holder", characters, 1, 253, ""},
		{"status.claim.session", characters, 0, 64, ""},
		{"status.reason", characters, 0, 1000, ""},
		{"status.record.plate", characters, 1, 253, ""},
		{"status.record.session", characters, 0, 64, ""},
		{"status.record.summary", characters, 0, 1000, ""},
		{"status.record.artifacts", items, 0, 16, ""},
		{"status.record.artifacts[]", characters, 0, 200, ""},
		{"status.record.next", characters, 0, 500, ""},
		{"status.record.reason", characters, 0, 1000, ""},
		{"status.record.resultRef", characters, 0, 512, ""},
		{"status.contested", items, 0, 2, ""},
		{"status.contested[].plate", characters, 1, 253, ""},
		{"status.contested[].session", characters, 0, 64, ""},
		{"status.contested[].summary", characters, 0, 1000, ""},
		{"status.contested[].artifacts", items, 0, 16, ""},
		{"status.contested[].artifacts[]", characters, 0, 200, ""},
		{"status.contested[].next", characters, 0, 500, ""},
		{"status.contested[].reason", characters, 0, 1000, ""},
		{"status.contested[].resultRef", characters, 0, 512, ""},
		{"status.history", items, 0, 20, ""},
		{"status.history[].by", characters, 0, 128, ""},
		{"status.history[].note", characters, 0, 128, ""},
		{"status.intervention.id", characters, 1, 64, ""},
		{"status.intervention.refused", characters, 0, 200, ""},
		{"status.lastNotice", characters, 0, 128, ""},
		{"status.conditions", items, 0, 4, ""},
	},
}

// boundsElsewhere have a test of their own, since other rules stand before them: TestTheLastClaimIsBounded and
// TestTheEpochIsBounded.
var boundsElsewhere = map[string][]bound{
	"Task": {
		{"status.epoch", value, 0, 1<<31 - 1, ""},
		{"status.lastClaim.holder", characters, 1, 253, ""},
		{"status.lastClaim.session", characters, 0, 64, ""},
		{"status.lastClaim.epoch", value, 0, 1<<31 - 1, ""},
	},
}

var states = []string{"Todo", "Doing", "Blocked", "Done", "Failed", "Cancelled"}

// enums lists the values of every field that has a fixed set of them.
var enums = map[string]map[string][]string{
	"Agent": {
		"spec.scopes[]":        {"Read", "Write", "Upload", "Download", "Invoke"},
		"spec.delegations[]":   {"Consent"},
		"spec.subjects[].kind": {"ServiceAccount", "User"},
	},
	"Consent": {"spec.mode": {"TaskByTask", "ApproveAll", "TrustCollaborator", "TrustRoom"}},
	"File":    {"spec.uploads[].state": {"Pending", "Quarantined"}},
	"MessageBatch": {
		"spec.messages[].sender.type": {"Agent", "Human", "System"},
	},
	"Room": {
		"spec.state":                {"Active", "Paused", "Archived"},
		"spec.members[].role":       {"Admin", "Member", "Viewer"},
		"spec.leasePolicy.onExpiry": {"Reopen", "MarkStale"},
	},
	"Task": {
		"spec.decision.verdict":    {"Accept", "Reject"},
		"spec.intervention.action": {"Release", "Cancel", "Reopen"},
		"status.state":             states,
		"status.consent.state":     {"Auto", "Pending", "Accepted", "Rejected"},
		"status.record.state":      states,
		"status.contested[].state": states,
		"status.history[].from":    states,
		"status.history[].to":      states,
		"status.lastClaim.ended":   {"Released", "Expired", "Finished", "Revoked"},
	},
}

// required lists the fields that must be given, wherever what they belong to is given.
var required = map[string][]string{
	"Agent":        {"spec", "spec.displayName", "spec.owner", "spec.subjects[].kind", "spec.subjects[].name"},
	"Consent":      {"spec", "spec.roomRef", "spec.roomRef.name", "spec.owner"},
	"File":         {"spec", "spec.roomRef", "spec.roomRef.name", "spec.path", "spec.versions[].sha256", "spec.versions[].size", "spec.versions[].contentType", "spec.versions[].by", "spec.versions[].at", "spec.versions[].version", "spec.uploads[].sha256", "spec.uploads[].size", "spec.uploads[].contentType", "spec.uploads[].by", "spec.uploads[].at", "spec.uploads[].id", "spec.uploads[].state", "spec.uploads[].expiresAt", "spec.deletion.throughVersion", "spec.deletion.by", "spec.deletion.at"},
	"Inbox":        {"spec", "spec.roomRef", "spec.roomRef.name", "spec.plate", "status.acked[].seq", "status.acked[].index", "status.deliveries[].seq", "status.deliveries[].index", "status.deliveries[].session", "status.deliveries[].until", "status.carried[].seq", "status.carried[].index", "status.carried[].at"},
	"MessageBatch": {"spec", "spec.roomRef", "spec.roomRef.name", "spec.number", "spec.firstSeq", "spec.writer", "spec.messages", "spec.messages[].sender", "spec.messages[].sender.type", "spec.messages[].sender.id", "spec.messages[].body", "spec.messages[].at", "spec.messages[].mentions[].plate"},
	"Room":         {"spec", "spec.displayName", "status.archive.throughSeq", "status.archive.throughTime"},
	"Task":         {"spec", "spec.roomRef", "spec.roomRef.name", "spec.title", "spec.definitionOfDone", "spec.decision.verdict", "spec.intervention.id", "spec.intervention.action", "status.intervention.id", "status.state", "status.epoch", "status.consent.state", "status.claim.holder", "status.lastClaim.holder", "status.lastClaim.epoch", "status.lastClaim.ended", "status.record.plate", "status.record.state", "status.contested[].plate", "status.contested[].state", "status.history[].to"},
}

// times lists the fields that hold a time: whole seconds, or microseconds. A Go client can read nothing else back, and one
// object that it cannot read would blind every controller.
var times = map[string]map[string]string{
	"File":         {"spec.versions[].at": "microseconds", "spec.uploads[].at": "microseconds", "spec.uploads[].expiresAt": "microseconds", "spec.deletion.at": "microseconds"},
	"Inbox":        {"status.deliveries[].until": "microseconds", "status.carried[].at": "microseconds"},
	"MessageBatch": {"spec.messages[].at": "microseconds"},
	"Room":         {"status.archive.throughTime": "seconds"},
	"Task": {
		"status.claim.acquiredAt": "microseconds",
		"status.consent.at":       "seconds",
		"status.lastClaim.at":     "seconds",
		"status.record.at":        "seconds",
		"status.contested[].at":   "seconds",
		"status.history[].at":     "seconds",
	},
}
