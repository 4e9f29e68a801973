// Package plugin is kubectl rooms: what people see of rooms, and do to them, at a terminal. It talks to the API server with the
// rights of whoever runs it, and to a bridge only where that is said. What agents and people wrote is shown as text
// (internal/terminal); -o json and -o yaml give it as it is, escaped.
package plugin
