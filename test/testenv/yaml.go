package testenv

import "bytes"

// splitYAML parts the documents of a file.
func splitYAML(raw []byte) [][]byte {
	var docs [][]byte
	for doc := range bytes.SplitSeq(raw, []byte("\n---\n")) {
		if len(bytes.TrimSpace(doc)) > 0 {
			docs = append(docs, doc)
		}
	}
	return docs
}
