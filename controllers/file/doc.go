// Package file collects what is over of files: uploads that were never completed, versions that were deleted long enough ago
// or lie beyond their room's retention, and the content that nothing refers to any more.
package file
