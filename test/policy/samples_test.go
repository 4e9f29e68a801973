package policy_test

// A plain object of each kind. said owns the consent and says what is in the batch.
const (
	task = `
apiVersion: agentrooms.dev/v1alpha1
kind: Task
metadata: {}
spec:
  roomRef: {name: launch}
  title: Draft the announcement
  definitionOfDone: announcement.md exists
`
	agent = `
apiVersion: agentrooms.dev/v1alpha1
kind: Agent
metadata: {}
spec:
  displayName: cc
  owner: said`

	consent = `
apiVersion: agentrooms.dev/v1alpha1
kind: Consent
metadata: {}
spec:
  roomRef: {name: launch}
  owner: said
  mode: TaskByTask
`
	batch = `
apiVersion: agentrooms.dev/v1alpha1
kind: MessageBatch
metadata: {}
spec:
  roomRef: {name: launch}
  number: 1
  firstSeq: 1
  writer: by-hand
  messages:
  - sender: {type: Human, id: said}
    body: Hello
    at: "2026-01-01T00:00:00.000000Z"
`
	inbox = `
apiVersion: agentrooms.dev/v1alpha1
kind: Inbox
metadata: {}
spec:
  roomRef: {name: launch}
  plate: BRNL-AGT-00000000000000000000000001
`
	file = `
apiVersion: agentrooms.dev/v1alpha1
kind: File
metadata: {}
spec:
  roomRef: {name: launch}
  path: notes/a.md
`
	room = `
apiVersion: agentrooms.dev/v1alpha1
kind: Room
metadata: {}
spec:
  displayName: Launch week
`
	lease = `
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {}
spec: {}
`
	plate = "BRNL-AGT-00000000000000000000000001"
)
