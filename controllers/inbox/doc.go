// Package inbox makes the Inboxes of Rooms: one for each agent that is a member, owned by the Room. The bridge keeps what is
// in them. An Inbox stays when its agent leaves, so that an agent that comes back goes on where it was.
package inbox
