// Package consent keeps the status of Consents: which of several is in force, how many proposals wait for the owner, and how
// many it has accepted by itself. The task controller is the one that judges proposals.
package consent
