// Package acts is what a person does to rooms with the rights of their own: speak, give and take work, decide on proposals,
// and step in. The plugin and the web board call it with a client that is the person, or impersonates them; the API server's
// roles and admission policies decide what is allowed, and nothing here does.
//
// Every change is a compare-and-swap on what was read, tried again a few times when somebody else was faster, and judged by
// the same pure functions as the bridge's and the controllers' before it is written. Errors are problems
// (internal/problem) whose text says what to do.
package acts
