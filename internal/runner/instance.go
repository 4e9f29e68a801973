package runner

import "github.com/agentrooms/agentrooms/internal/ids"

// Instance gives the name of an instance that was given none: the same for the same command (listen or work) on the same host in
// the same folder, so that one that starts again finds what it held. The two never share a name: as one instance, a listener
// that lives would keep the tasks of a worker that is dead.
func Instance(command, host, workspace string) string {
	return command + "-" + ids.Digest("instance", command, host, workspace)[:16]
}
