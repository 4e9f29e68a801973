// Package manager runs the controllers of Agent Rooms: what `rooms manager` does, for tests to run in their own process as
// well.
package manager
