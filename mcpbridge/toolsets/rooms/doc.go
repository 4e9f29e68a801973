// Package rooms is the core toolset: rooms to talk in, mentions that one instance handles, a board of tasks that no two
// agents ever both take, and consent over what other people's agents may ask.
//
// The handlers here are thin. Rules stand in the schema and in internal/; reads come from the view; writes are the fewest
// API calls that are correct: one for a claim, a renewal, a message and a task.
package rooms
