// Package retention moves messages that are beyond a Room's retention to the blob store, a segment at a time, each step on
// ground that the one before has made sure of:
//
//  1. the segment is written, read back and verified;
//  2. mentions in it that are pending are carried over into the Inboxes of their agents;
//  3. the Room's status says, by compare-and-swap, that the segment stands there: from then on readers look for it there;
//  4. after a grace time its batches are deleted, oldest first.
//
// A crash anywhere is finished by the next reconcile: what was done is found done.
package retention
