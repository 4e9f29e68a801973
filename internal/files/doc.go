// Package files holds the rules of files: which paths there are, what a new version does to a File, which bytes a range
// means, and what is collected when. Nothing in it does I/O.
package files
