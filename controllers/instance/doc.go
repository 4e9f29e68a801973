// Package instance collects the Leases of instances that are dead: those that nobody has renewed for ten minutes by the
// collector's own clock. Nothing is polled: each Lease is looked at again when its time would be up.
package instance
