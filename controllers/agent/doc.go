// Package agent keeps the status of Agents: the plate, whether another Agent claims the same identity, and how many
// instances show that they live. Life is judged by the controller's own clock since it last saw an instance renew.
package agent
