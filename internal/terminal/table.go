package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Table shows rows in columns.
type Table struct {
	// Columns are the headings.
	Columns []string
	// Flexible is the column that gives way when the rows are wider than the screen, -1 for none.
	Flexible int
	// Width of the screen in columns, 0 for one without end.
	Width int

	rows [][]string
}

// maxCell is how many columns a cell takes at most, whatever the screen.
const maxCell = 120

// Add adds a row. Its cells may hold anything.
func (t *Table) Add(cells ...string) {
	row := make([]string, len(t.Columns))
	for i := range row {
		if i < len(cells) {
			row[i] = Cut(Line(cells[i]), maxCell)
		}
	}
	t.rows = append(t.rows, row)
}

// Drop removes a column.
func (t *Table) Drop(column string) {
	at := slices.Index(t.Columns, column)
	if at < 0 {
		return
	}
	t.Columns = slices.Delete(slices.Clone(t.Columns), at, at+1)
	for i := range t.rows {
		t.rows[i] = slices.Delete(t.rows[i], at, at+1)
	}
	switch {
	case at == t.Flexible:
		t.Flexible = -1
	case at < t.Flexible:
		t.Flexible--
	}
}

// Len gives how many rows there are.
func (t *Table) Len() int { return len(t.rows) }

// Write shows the table, with the headings unless there are none to be.
func (t *Table) Write(w io.Writer, headings bool) error {
	rows := t.rows
	if headings {
		rows = slices.Concat([][]string{t.Columns}, rows)
	}
	widths := t.widths(rows)
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			cell = Cut(cell, widths[i])
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-Width(cell)+gap))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing a table: %w", err)
	}
	return nil
}

// gap stands between two columns.
const gap = 3

// minFlexible is how narrow the flexible column may become.
const minFlexible = 12

func (t *Table) widths(rows [][]string) []int {
	widths, total := make([]int, len(t.Columns)), gap*(len(t.Columns)-1)
	for i := range widths {
		for _, row := range rows {
			widths[i] = max(widths[i], Width(row[i]))
		}
		total += widths[i]
	}
	if f := t.Flexible; f >= 0 && t.Width > 0 && total > t.Width {
		widths[f] = max(min(widths[f], minFlexible), widths[f]-(total-t.Width))
	}
	return widths
}
