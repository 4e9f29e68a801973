// Package integration looks at Agent Rooms from outside: the real binary, a real API server, two bridge replicas, and MCP
// clients.
package integration

import (
	"testing"

	"github.com/agentrooms/agentrooms/test/harness"
)

// plane is shared by the tests of this package. Each works in a namespace of its own.
var plane *harness.Plane

func TestMain(m *testing.M) { harness.Main(m, &plane, harness.Options{Bridges: 2}) }
