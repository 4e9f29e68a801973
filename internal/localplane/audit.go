package localplane

const auditPolicyFile = "audit-policy.yaml"

// auditPolicy records who did what to which object, once for each request (and once more when a watch begins).
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// auditFlags let each request write its own event, without a buffer in between. The event still trails the answer by a
// moment: a reader polls.
func auditFlags(policy, log string) []string {
	return []string{
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + log,
		"--audit-log-format=json",
		"--audit-log-mode=blocking",
		"--audit-log-maxsize=512",
		"--audit-log-maxbackup=2",
	}
}
