// Package runner decides for `rooms listen` and `rooms work`, which make any command a member of a room: what a wake is about,
// which one comes next, which task to take, how long a claim may be relied on, and what the end of a command means. It is told
// the time and does no I/O; package agent carries out what it decides.
package runner
