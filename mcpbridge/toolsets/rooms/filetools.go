package rooms

import (
	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// maxContent is how many characters the content of a call may have: more than any that is accepted, so that too much content is
// answered with what to do about it.
const maxContent = 8 * files.MaxInline

// maxUpload is how many bytes an upload may have: what one PUT of S3 takes.
const maxUpload = 5 << 30

func uploads(tool toolset.Tool) toolset.Tool {
	tool.Scope, tool.Bucket, tool.Hints = v1alpha1.ScopeUpload, toolset.BucketUpload, true
	return tool
}

func downloads(tool toolset.Tool) toolset.Tool {
	tool = reads(tool)
	tool.Scope = v1alpha1.ScopeDownload
	return tool
}

func (t *Toolset) fileTools() []toolset.Tool {
	path := toolset.Param{Name: "path", Type: toolset.TypeString, Max: v1alpha1.MaxFilePath, Description: "like notes/plan.md"}
	fileID := toolset.Param{Name: "file_id", Type: toolset.TypeString, Max: 64}
	kind := toolset.Param{Name: "content_type", Type: toolset.TypeString, Max: 127}
	span := toolset.Param{
		Name: "range", Type: toolset.TypeObject, Description: "bytes by offset and length, or lines by start_line and end_line",
		Fields: []toolset.Param{
			integer("offset", 0, maxUpload, ""), integer("length", 1, maxUpload, ""),
			integer("start_line", 1, maxUpload, ""), integer("end_line", 1, maxUpload, ""),
		},
	}
	return []toolset.Tool{
		uploads(toolset.Tool{
			Name: "write_file", Description: "Write a file of up to 256 KiB. The same path again makes its next version.",
			Params: []toolset.Param{
				room, required(path), {Name: "content", Type: toolset.TypeString, Required: true, Raw: true, Max: maxContent},
				{Name: "encoding", Type: toolset.TypeString, Enum: []string{files.UTF8, files.Base64}}, kind,
				integer("base_version", 0, maxSeq, "write only if this is the present version; 0: only if there is none"), key,
			},
			Output: schemaOf[FileWritten](), Handle: t.writeFile,
		}),
		downloads(toolset.Tool{
			Name: "read_file", Description: "Read a file, or a part of it. truncated: read on with next_range.",
			Params: []toolset.Param{room, path, fileID, integer("version", 1, maxSeq, "the latest if absent"), span},
			Output: schemaOf[FileRead](), Handle: t.readFile,
		}),
		downloads(toolset.Tool{
			Name: "list_files", Description: "The files of a room, in their latest versions.",
			Params: []toolset.Param{
				room, {Name: "prefix", Type: toolset.TypeString, Max: v1alpha1.MaxFilePath},
				{Name: "after", Type: toolset.TypeString, Max: v1alpha1.MaxFilePath, Description: "next_after of the list before"},
			},
			Output: schemaOf[FileList](), Handle: t.listFiles,
		}),
		uploads(toolset.Tool{
			Name: "delete_file", Description: "Delete a file with all its versions.",
			Params: []toolset.Param{room, path, fileID}, Output: schemaOf[FileDeleted](), Handle: t.deleteFile,
			Destructive: true, Idempotent: true,
		}),
		uploads(toolset.Tool{
			Name: "share_file", Description: "Announce a large file: PUT its bytes to upload_url with these headers, then call " +
				"complete_file_upload.",
			Params: []toolset.Param{
				room, required(toolset.Param{Name: "filename", Type: toolset.TypeString, Max: v1alpha1.MaxFilePath, Description: "its path in the room"}),
				required(kind), required(integer("size_bytes", 0, maxUpload, "")), required(text("sha256", 64, "64 hexadecimal digits")), key,
			},
			Output: schemaOf[FileShared](), Handle: t.shareFile,
		}),
		uploads(toolset.Tool{
			Name: "complete_file_upload", Description: "Say that the bytes are there. They are checked against sha256 first.",
			Params: []toolset.Param{required(fileID)}, Output: schemaOf[FileCompleted](), Handle: t.completeUpload, Idempotent: true,
		}),
		downloads(toolset.Tool{
			Name: "fetch_file", Description: "A URL to GET a file of any size from, for some minutes.",
			Params: []toolset.Param{required(fileID)}, Output: schemaOf[FileFetched](), Handle: t.fetchFile,
		}),
	}
}
