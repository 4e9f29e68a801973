package v1alpha1_test

// A full object of each kind: every field of the schema is set, and the API server accepts it as it stands. The bounds are
// tested by changing one field of it at a time. Status is written after creation, as a status is.
var full = map[string]string{
	"Room": `
apiVersion: agentrooms.dev/v1alpha1
kind: Room
metadata: {}
spec:
  displayName: Launch week
  description: Where the launch is planned.
  state: Active
  members:
  - user: said
    role: Admin
  - agent: {name: cc}
    role: Member
  - agent: {plate: BRNL-AGT-00000000000000000000000001}
    role: Viewer
  leasePolicy: {durationSeconds: 600, onExpiry: Reopen}
  retention:
    messages: {maxCount: 1000, maxAgeSeconds: 86400}
    fileVersions: 10
    archivedTasks: 100
  limits: {openTasks: 100, files: 100, fileBytes: 1000000}
status:
  observedGeneration: 1
  id: 01K00000000000000000000000
  lastSeq: 7
  tasks: {todo: 1, doing: 1, blocked: 1, done: 1, failed: 1, cancelled: 1}
  members: 3
  archive: {throughSeq: 2000, throughBatch: 40, throughBatchSeq: 1990, throughTime: "2026-01-01T00:00:00Z", segments: 2, bytes: 90000}
  conditions: [{type: Ready, status: "True", observedGeneration: 1, reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
`,
	"Agent": `
apiVersion: agentrooms.dev/v1alpha1
kind: Agent
metadata: {}
spec:
  displayName: cc
  owner: said
  scopes: [Read, Write, Upload, Download, Invoke]
  subjects:
  - {kind: ServiceAccount, name: cc, namespace: default}
  - {kind: User, name: said}
  delegations: [Consent]
status:
  observedGeneration: 1
  plate: BRNL-AGT-00000000000000000000000001
  liveInstances: 2
  conditions: [{type: Ready, status: "True", observedGeneration: 1, reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
`,
	"File": `
apiVersion: agentrooms.dev/v1alpha1
kind: File
metadata: {}
spec:
  roomRef: {name: launch}
  path: docs/plan.md
  versions:
  - version: 2
    sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
    size: 0
    contentType: text/markdown
    by: {user: said}
    at: "2026-01-01T00:00:00.000000Z"
    key: A000000000000000000000000000000000000000000
    payload: A000000000000000000000000000000000000000000
    uploadID: 01K00000000000000000000000
  - version: 1
    sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
    size: 0
    contentType: text/markdown
    by: {plate: BRNL-AGT-00000000000000000000000001}
    at: "2026-01-01T00:00:00.000000Z"
  uploads:
  - id: 01K00000000000000000000001
    state: Quarantined
    sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
    size: 7
    contentType: text/markdown
    by: {plate: BRNL-AGT-00000000000000000000000001}
    at: "2026-01-01T00:00:00.000000Z"
    expiresAt: "2026-01-02T00:00:00.000000Z"
    key: A000000000000000000000000000000000000000000
    payload: A000000000000000000000000000000000000000000
    reason: the bytes are not what was announced
  - id: 01K00000000000000000000002
    state: Pending
    sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
    size: 7
    contentType: text/markdown
    by: {user: said}
    at: "2026-01-01T00:00:00.000000Z"
    expiresAt: "2026-01-02T00:00:00.000000Z"
  deletion: {throughVersion: 2, by: {user: said}, at: "2026-01-01T00:00:00.000000Z"}
`,
	"Consent": `
apiVersion: agentrooms.dev/v1alpha1
kind: Consent
metadata: {}
spec:
  roomRef: {name: launch}
  owner: maya
  mode: TrustCollaborator
  collaborators: [said]
status:
  observedGeneration: 1
  pending: 1
  autoAccepted: 1
  conditions: [{type: Ready, status: "True", observedGeneration: 1, reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
`,
	"MessageBatch": `
apiVersion: agentrooms.dev/v1alpha1
kind: MessageBatch
metadata: {}
spec:
  roomRef: {name: launch}
  number: 1
  firstSeq: 1
  writer: replica-1.1
  messages:
  - sender: {type: Agent, id: BRNL-AGT-00000000000000000000000001, name: cc}
    body: Hello
    mentions: [{plate: BRNL-AGT-00000000000000000000000002, session: s1, taskRef: draft}]
    parentID: 01K00000000000000000000000
    fileRef: 01K00000000000000000000000
    key: A000000000000000000000000000000000000000000
    payload: A000000000000000000000000000000000000000000
    at: "2026-01-01T00:00:00.000000Z"
`,
	"Inbox": `
apiVersion: agentrooms.dev/v1alpha1
kind: Inbox
metadata: {}
spec:
  roomRef: {name: launch}
  plate: BRNL-AGT-00000000000000000000000001
status:
  lastReadSeq: 3
  ackedThrough: 1
  deliveredThrough: 3
  acked: [{seq: 3, index: 0}]
  deliveries: [{seq: 2, index: 1, session: s1, until: "2026-01-01T00:00:00.000000Z"}]
  carried: [{seq: 2, index: 1, session: s1, at: "2026-01-01T00:00:00.000000Z"}]
`,
	"Task": `
apiVersion: agentrooms.dev/v1alpha1
kind: Task
metadata: {}
spec:
  roomRef: {name: launch}
  title: Draft the announcement
  detail: One page.
  definitionOfDone: announcement.md exists
  assignee: cc
  order: 1
  priority: 50
  type: writing
  dependsOn: [collect-dates]
  creator: {user: said}
  assignedBy: {plate: BRNL-AGT-00000000000000000000000001}
  decision: {verdict: Accept, reason: gladly, terms: A000000000000000000000000000000000000000000, by: maya}
  intervention: {id: i1, action: Cancel, reason: no need, epoch: 1, by: said}
  leaseDurationSeconds: 600
status:
  observedGeneration: 1
  state: Doing
  epoch: 1
  consent: {state: Accepted, assignee: BRNL-AGT-00000000000000000000000001, by: maya, standing: true, terms: A000000000000000000000000000000000000000000, reason: gladly, at: "2026-01-01T00:00:00Z"}
  claim: {holder: BRNL-AGT-00000000000000000000000001, session: s1, acquiredAt: "2026-01-01T00:00:00.000000Z"}
  reason: once blocked
  record: {plate: p, session: s1, epoch: 0, state: Doing, summary: s, artifacts: ["file:a"], next: later, reason: why, resultRef: "file:a", late: true, at: "2026-01-01T00:00:00Z"}
  contested:
  - {plate: p, session: s1, epoch: 0, state: Doing, summary: s, artifacts: ["file:a"], next: later, reason: why, resultRef: "file:a", late: true, at: "2026-01-01T00:00:00Z"}
  history: [{at: "2026-01-01T00:00:00Z", from: Todo, to: Doing, by: p, epoch: 1, note: claimed}]
  intervention: {id: i1, refused: too late}
  lastNotice: n1
  conditions: [{type: Ready, status: "True", observedGeneration: 1, reason: Ready, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
`,
}

// doneOnce is the status of a task on its way: what must be written after the full one for lastClaim to be there.
const doneOnce = `{state: Done, epoch: 2, claim: null, lastClaim: {holder: BRNL-AGT-00000000000000000000000001, session: s1, epoch: 1, ended: Finished, at: "2026-01-01T00:00:00Z"}}`
