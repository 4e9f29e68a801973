// Package controllers sets up every controller of Agent Rooms. Each kind has a package of its own below it, and what they
// share is in controllers/internal.
package controllers
