package rooms

import "github.com/agentrooms/agentrooms/internal/files"

// FileWritten is what write_file gives.
type FileWritten struct {
	FileID      string `json:"file_id"`
	Path        string `json:"path"`
	Version     int64  `json:"version"`
	Size        int64  `json:"size"`
	ContentType string `json:"content_type"`
	SHA256      string `json:"sha256"`
	Duplicate   bool   `json:"duplicate,omitempty"`
}

// FileRead is what read_file gives.
type FileRead struct {
	FileID      string `json:"file_id"`
	Path        string `json:"path"`
	Version     int64  `json:"version"`
	Content     string `json:"content"`
	Encoding    string `json:"encoding"`
	ContentType string `json:"content_type"`
	Size        int64  `json:"size"`
	// Range is which bytes of the file the content is.
	Range     files.Span  `json:"range"`
	Truncated bool        `json:"truncated"`
	NextRange *files.Span `json:"next_range,omitempty"`
}

// FileInfo is a file as list_files gives it.
type FileInfo struct {
	Path        string `json:"path"`
	FileID      string `json:"file_id"`
	Version     int64  `json:"version"`
	Size        int64  `json:"size"`
	ContentType string `json:"content_type"`
	SHA256      string `json:"sha256"`
	UpdatedAt   string `json:"updated_at"`
	UpdatedBy   string `json:"updated_by"`
}

// FileList is what list_files gives.
type FileList struct {
	Files []FileInfo `json:"files"`
	// NextAfter is where the next list begins, when there are more.
	NextAfter string `json:"next_after,omitempty"`
}

// FileDeleted is what delete_file gives.
type FileDeleted struct {
	Deleted bool `json:"deleted"`
}

// FileShared is what share_file gives.
type FileShared struct {
	FileID    string            `json:"file_id"`
	UploadURL string            `json:"upload_url"`
	Method    string            `json:"method"`
	Headers   map[string]string `json:"headers"`
	ExpiresAt string            `json:"expires_at"`
	Status    string            `json:"status"`
	Duplicate bool              `json:"duplicate,omitempty"`
}

// FileCompleted is what complete_file_upload gives.
type FileCompleted struct {
	FileID  string `json:"file_id"`
	Status  string `json:"status"`
	Path    string `json:"path,omitempty"`
	Version int64  `json:"version,omitempty"`
	Size    int64  `json:"size"`
	SHA256  string `json:"sha256"`
	Reason  string `json:"reason,omitempty"`
}

// FileFetched is what fetch_file gives.
type FileFetched struct {
	FileID      string            `json:"file_id"`
	DownloadURL string            `json:"download_url"`
	Headers     map[string]string `json:"headers,omitempty"`
	ExpiresAt   string            `json:"expires_at"`
	ContentType string            `json:"content_type"`
	Size        int64             `json:"size"`
	SHA256      string            `json:"sha256"`
	Version     int64             `json:"version"`
}
