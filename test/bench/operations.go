package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
)

func (op operation) key() string { return key(op.name, op.clients) }

func key(name string, clients int) string { return fmt.Sprintf("%s@%d", name, clients) }

// The names of the operations.
const (
	bareCAS     = "bare: Task status compare-and-swap"
	barePair    = "bare: compare-and-swap, then Lease create"
	bareRenew   = "bare: Lease update"
	bareWatched = "bare: Lease update, of a task's Lease"
	bareMessage = "bare: MessageBatch create, one message"
	bareGet     = "bare: GET of one Task"
	ourClaim    = "claim_task"
	ourRenew    = "renew_lease"
	ourSend     = "send_message, one room"
	ourSpread   = "send_message, 32 rooms"
	ourReplicas = "send_message, one room, two replicas"
	ourWhoami   = "whoami"
	ourBoard    = "read_board, 50 tasks"
	ourPing     = "ping (no tool)"
	bareWrite   = "bare: blob put and File create, 1 KB"
	ourWrite    = "write_file, 1 KB"
	bareRead    = "bare: blob GET by signed URL, 1 KB"
	ourRead     = "read_file, 1 KB that was read before"
	ourRace     = "claim_task, all racing for one task"
)

// racers on one task.
const racers = 64

// claims is how many tasks are claimed in a round, by the number of clients.
var claims = map[int]int{1: 80, 8: 240, 32: 384}

// operations gives all that is measured, each beside what it is compared with.
func (w *world) operations(scale float64) []operation {
	var ops []operation
	add := func(name string, clients []int, prepare func(clients int) func(context.Context, int) (call, int, error)) {
		for _, n := range clients {
			ops = append(ops, operation{name: name, clients: n, prepare: prepare(n)})
		}
	}
	all := []int{1, 8, 32}
	add(bareCAS, all, w.bareCAS)
	add(barePair, all, w.barePair)
	add(ourClaim, all, func(n int) func(context.Context, int) (call, int, error) {
		return w.claim(int(float64(claims[n]) * scale))
	})
	add(ourRace, []int{racers}, w.race)
	add(bareRenew, all, w.bareRenew)
	add(ourRenew, all, w.renew)
	add(bareWatched, all, w.bareWatched)
	add(bareMessage, all, w.bareMessage)
	add(ourSend, all, w.send(func(int) (int, string) { return 0, w.lobby }))
	add(ourSpread, []int{8, 32}, w.send(func(i int) (int, string) { return 0, w.spread[i%spread] }))
	add(ourReplicas, []int{8, 32}, w.send(func(i int) (int, string) { return i % len(w.replicas), w.lobby }))
	add(bareGet, all, w.bareGet)
	add(ourPing, all, w.same([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), `"result"`))
	add(ourWhoami, all, w.reading("whoami", nil, worker))
	add(ourBoard, all, w.reading("read_board", map[string]any{"room": w.board}, "Task 49"))
	add(bareWrite, all, w.bareWrite)
	add(ourWrite, all, w.write)
	add(bareRead, all, w.bareRead)
	add(ourRead, all, w.read)
	slices.SortStableFunc(ops, func(a, b operation) int { return a.clients - b.clients })
	return ops
}

func (w *world) bareCAS(clients int) func(context.Context, int) (call, int, error) {
	return func(ctx context.Context, _ int) (call, int, error) {
		list, err := w.bareTasks(ctx, clients)
		return func(i, n int) (err error) {
			list[i], err = w.cas(ctx, list[i], n)
			return err
		}, 0, err
	}
}

func (w *world) barePair(clients int) func(context.Context, int) (call, int, error) {
	return func(ctx context.Context, round int) (call, int, error) {
		list, err := w.bareTasks(ctx, clients)
		return func(i, n int) (err error) {
			if list[i], err = w.cas(ctx, list[i], n); err != nil {
				return err
			}
			_, err = w.createLease(ctx, fmt.Sprintf("pair-%d-%d-%d", round, clients, n))
			return err
		}, 0, err
	}
}

func (w *world) claim(count int) func(context.Context, int) (call, int, error) {
	return func(ctx context.Context, _ int) (call, int, error) {
		tasks, err := w.freshTasks(ctx, "lobby", w.lobby, count)
		if err != nil {
			return nil, 0, err
		}
		return func(i, n int) error {
			body := toolCall("claim_task", map[string]any{"task_id": tasks[n], "session_id": session(i)})
			return w.replicas[0].must(ctx, body, `"ok":true`)
		}, count, nil
	}
}

// race has everybody claim the same task once. What counts is how long all of it takes.
func (w *world) race(clients int) func(context.Context, int) (call, int, error) {
	return func(ctx context.Context, _ int) (call, int, error) {
		tasks, err := w.freshTasks(ctx, "lobby", w.lobby, 1)
		if err != nil {
			return nil, 0, err
		}
		return func(i, _ int) error {
			body := toolCall("claim_task", map[string]any{"task_id": tasks[0], "session_id": session(i)})
			return w.replicas[0].must(ctx, body, `"ok":`)
		}, clients, nil
	}
}

func (w *world) bareRenew(clients int) func(context.Context, int) (call, int, error) {
	return func(ctx context.Context, round int) (call, int, error) {
		list := make([]*coordinationv1.Lease, clients)
		for i := range list {
			lease, err := w.createLease(ctx, fmt.Sprintf("renew-%d-%d-%d", round, clients, i))
			if err != nil {
				return nil, 0, err
			}
			list[i] = lease
		}
		return func(i, _ int) (err error) {
			list[i], err = w.renewLease(ctx, w.leases, list[i])
			return err
		}, 0, nil
	}
}

// bareWatched renews the Leases of claimed tasks, as renew_lease does. Bridges and controllers watch them.
func (w *world) bareWatched(clients int) func(context.Context, int) (call, int, error) {
	return func(ctx context.Context, _ int) (call, int, error) {
		list, err := w.heldLeases(ctx)
		if err == nil && len(list) < clients {
			err = fmt.Errorf("there are %d leases of claimed tasks, want %d", len(list), clients)
		}
		return func(i, _ int) (err error) {
			list[i], err = w.renewLease(ctx, w.bridge, list[i])
			return err
		}, 0, err
	}
}

func (w *world) renew(int) func(context.Context, int) (call, int, error) {
	return func(ctx context.Context, _ int) (call, int, error) {
		bodies := make([][]byte, len(w.held))
		for i, id := range w.held {
			bodies[i] = toolCall("renew_lease", map[string]any{"task_id": id, "session_id": session(i)})
		}
		return func(i, _ int) error { return w.replicas[0].must(ctx, bodies[i], `"ok":true`) }, 0, nil
	}
}

func (w *world) bareMessage(clients int) func(context.Context, int) (call, int, error) {
	return func(ctx context.Context, round int) (call, int, error) {
		numbers := make([]int64, clients)
		return func(i, _ int) error {
			numbers[i]++
			return w.createMessage(ctx, fmt.Sprintf("r%dc%dx%d", round, clients, i), numbers[i])
		}, 0, nil
	}
}

// send has each client send to the replica and the room that are its own.
func (w *world) send(where func(client int) (replica int, room string)) func(int) func(context.Context, int) (call, int, error) {
	return func(clients int) func(context.Context, int) (call, int, error) {
		return func(ctx context.Context, _ int) (call, int, error) {
			bodies, replicas := make([][]byte, clients), make([]*mcp, clients)
			for i := range bodies {
				replica, room := where(i)
				replicas[i] = w.replicas[replica]
				bodies[i] = toolCall("send_message", map[string]any{"room": room, "body": messageBody, "session_id": session(i)})
			}
			return func(i, _ int) error { return replicas[i].must(ctx, bodies[i], `"seq":`) }, 0, nil
		}
	}
}

func (w *world) bareGet(int) func(context.Context, int) (call, int, error) {
	return func(ctx context.Context, _ int) (call, int, error) {
		var list v1alpha1.TaskList
		if err := w.admin.List(ctx, &list); err != nil || len(list.Items) == 0 {
			return nil, 0, fmt.Errorf("listing tasks: %w", err)
		}
		name := list.Items[0].Name
		return func(int, int) error {
			_, err := w.readTask(ctx, name)
			return err
		}, 0, nil
	}
}

// same has everybody send the same.
func (w *world) same(body []byte, want string) func(int) func(context.Context, int) (call, int, error) {
	return func(int) func(context.Context, int) (call, int, error) {
		return func(ctx context.Context, _ int) (call, int, error) {
			return func(int, int) error { return w.replicas[0].must(ctx, body, want) }, 0, nil
		}
	}
}

// reading has everybody call a tool that reads.
func (w *world) reading(tool string, args map[string]any, want string) func(int) func(context.Context, int) (call, int, error) {
	return func(clients int) func(context.Context, int) (call, int, error) {
		return func(ctx context.Context, _ int) (call, int, error) {
			bodies := make([][]byte, clients)
			for i := range bodies {
				own := map[string]any{"session_id": session(i)}
				maps.Copy(own, args)
				bodies[i] = toolCall(tool, own)
			}
			return func(i, _ int) error { return w.replicas[0].must(ctx, bodies[i], want) }, 0, nil
		}
	}
}
