// Package task keeps Tasks: it finds the assignee, settles the consent of the assignee's owner, takes a task back that was
// given to somebody else, makes and judges the lease of a claim, watches the dependencies, and tells the room.
//
// A claim is one write of whoever claims, arbitrated by the API server. Everything here is level-triggered and idempotent:
// a reconcile reads what is there, decides with pure functions, acts on the Lease first and then writes the status once,
// with the resourceVersion it read. A crash between any two steps is finished by the next reconcile.
//
// Expiry takes the Lease away first, by clearing its holder under its resourceVersion, and reopens the task then. A renewal
// that comes in between fails; one that came before makes the clearing fail, and the expiry is off. The cleared Lease stays
// as a tombstone until the task is claimed anew or ends, so that a late renewal finds it and not an empty place to fill.
package task
