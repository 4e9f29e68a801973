// Package room keeps the status of Rooms: the id, whether the members exist, and counts of tasks and messages. The counts
// follow what moves in the room at a distance of seconds, so that a busy room is written once in five seconds and a quiet
// one not at all.
package room
