package board

import (
	"html/template"
	"net/http"
	"strconv"
	"time"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/files"
	"github.com/agentrooms/agentrooms/internal/ids"
	"github.com/agentrooms/agentrooms/internal/problem"
	"github.com/agentrooms/agentrooms/internal/roomlog"
)

const (
	// logPage is how many messages are loaded at once.
	logPage = 50
	// maxGap is how many messages are sent one after the other to a page that lags; one that lags more gets the last page anew.
	maxGap = 200
)

// messageView is a message as a page shows it.
type messageView struct {
	Seq                       int64
	ID, Kind, From, FromTitle string
	At                        time.Time
	Body                      string
	Mentions                  []mentionView
	// Parent is the seq of the message that this one answers, 0 for none.
	Parent int64
	// File is the id of a file that goes with it. FilePath is its path, for those who may see it.
	File, FilePath string
}

// mentionView is whom a message is for, and about which task.
type mentionView struct{ Name, TaskID, Task string }

// logView is a piece of a log.
type logView struct {
	Room     string
	Messages template.HTML
	// Older is the seq before which there are more, 0 for none. Last is the last one shown.
	Older, Last int64
}

func (b *Board) messageView(a *access, e roomlog.Entry) messageView {
	m := e.Message
	v := messageView{
		Seq: e.Seq, ID: ids.MessageID(a.id, m.At.Time, e.Seq), Kind: string(m.Sender.Type), From: m.Sender.Name,
		FromTitle: m.Sender.ID, At: m.At.Time, Body: m.Body, File: m.FileRef,
	}
	switch {
	case m.Sender.Type == v1alpha1.SenderAgent:
		v.From = b.alias(m.Sender.ID)
	case v.From == "":
		v.From = m.Sender.ID
	}
	if v.From == m.Sender.ID && m.Sender.Name != "" {
		v.From = m.Sender.Name
	}
	if seq, ok := ids.MessageSeq(a.id, m.ParentID); ok {
		v.Parent = seq
	}
	if f, _, ok := b.view.FileByID(m.FileRef); ok && a.may.Files && files.OfRoom(f, a.room) {
		v.FilePath = f.Spec.Path
	}
	for _, mention := range m.Mentions {
		shown := mentionView{Name: b.alias(mention.Plate)}
		if mention.Session != "" {
			shown.Name += "#" + mention.Session
		}
		if task, ok := b.view.Task(a.room.Namespace, mention.TaskRef); ok && mention.TaskRef != "" && a.may.Tasks {
			shown.TaskID, shown.Task = ids.ID(task), task.Spec.Title
		}
		v.Mentions = append(v.Mentions, shown)
	}
	return v
}

func (b *Board) messages(a *access, entries []roomlog.Entry) (template.HTML, error) {
	var out template.HTML
	for _, e := range entries {
		html, err := b.fragment("message", b.messageView(a, e))
		if err != nil {
			return "", err
		}
		out += html
	}
	return out, nil
}

// latestMessages gives the end of a room's log, to those who may read it.
func (b *Board) latestMessages(a *access) (logView, error) {
	if !a.may.Messages {
		return logView{Room: a.id, Last: b.view.Log(a.room).LastSeq()}, nil
	}
	return b.messagesBefore(a, 0)
}

func (b *Board) messagesBefore(a *access, before int64) (logView, error) {
	log := b.view.Log(a.room)
	entries := log.Before(before, logPage)
	v := logView{Room: a.id, Last: before}
	if n := len(entries); n > 0 {
		v.Last = entries[n-1].Seq
		if _, more := log.At(entries[0].Seq - 1); more {
			v.Older = entries[0].Seq
		}
	}
	var err error
	v.Messages, err = b.messages(a, entries)
	return v, err
}

// olderMessages serves the messages before one, for a page that scrolls back; the end of the log when none is named.
func (b *Board) olderMessages(w http.ResponseWriter, r *http.Request, p *person) error {
	a, err := b.findRoom(r, p)
	if err != nil {
		return err
	}
	if !a.may.Messages {
		return problem.New(problem.Forbidden, "you may not read what is said in this room")
	}
	before, err := strconv.ParseInt(r.FormValue("before"), 10, 64)
	if err != nil || before < 1 {
		return problem.Invalid("before", "must be the number of a message")
	}
	page, err := b.messagesBefore(a, before)
	if err != nil {
		return err
	}
	b.render(w, r, http.StatusOK, "log-items", page)
	return nil
}

// follow gives what a page that shows the log up to a seq lacks, and the seq that it shows then.
func (b *Board) follow(a *access, seq int64) (html string, last int64, err error) {
	log := b.view.Log(a.room)
	end := log.LastSeq()
	if !a.may.Messages || end <= seq {
		return "", max(seq, end), nil
	}
	if end-seq > maxGap {
		page, err := b.latestMessages(a)
		if err != nil {
			return "", seq, err
		}
		items, err := b.fragment("log-items", page)
		return inside("innerHTML:#log", string(items)), page.Last, err
	}
	var entries []roomlog.Entry
	for n := seq + 1; n <= end; n++ {
		if e, ok := log.At(n); ok {
			entries = append(entries, e)
		}
	}
	items, err := b.messages(a, entries)
	return inside("beforeend:#log", string(items)), end, err
}
