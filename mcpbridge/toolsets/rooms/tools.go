package rooms

import (
	"encoding/json"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/mcpbridge/toolset"
)

// schemaOf gives the JSON schema of a result.
func schemaOf[T any]() map[string]any {
	var schema map[string]any
	tool := mcp.NewTool("schema", mcp.WithOutputSchema[T]())
	raw := tool.RawOutputSchema
	if len(raw) == 0 {
		raw, _ = json.Marshal(tool.OutputSchema)
	}
	if err := json.Unmarshal(raw, &schema); err != nil || schema == nil {
		return map[string]any{"type": "object"}
	}
	return schema
}

func str(name, description string) toolset.Param {
	return toolset.Param{Name: name, Type: toolset.TypeString, Description: description}
}

func text(name string, limit int64, description string) toolset.Param {
	return toolset.Param{Name: name, Type: toolset.TypeString, Max: limit, Description: description}
}

func integer(name string, low, high int64, description string) toolset.Param {
	return toolset.Param{Name: name, Type: toolset.TypeInteger, Min: low, Max: high, Description: description}
}

func list(name string, items int, description string) toolset.Param {
	return toolset.Param{Name: name, Type: toolset.TypeStrings, MaxItems: items, Description: description}
}

func required(p toolset.Param) toolset.Param {
	p.Required = true
	return p
}

const (
	maxSeq   = 1 << 40
	maxOrder = 1000000000
)

var (
	room   = required(toolset.Param{Name: "room", Type: toolset.TypeString, Max: 64, Description: "room id (01K…)"})
	taskID = required(toolset.Param{Name: "task_id", Type: toolset.TypeString, Max: 64})
	key    = toolset.Param{Name: "idempotency_key", Type: toolset.TypeString, Max: 256, Description: "same key again: same answer, done once"}
	fence  = integer("fence", 0, maxSeq, "lease.fence of your claim")
	states = []string{"todo", "doing", "blocked", "done", "failed", "cancelled"}
)

// table lists the tools in the order in which they are shown.
func (t *Toolset) table() []toolset.Tool {
	tools := append(t.roomTools(), t.mentionTools()...)
	tools = append(tools, t.taskTools()...)
	tools = append(tools, t.workTools()...)
	tools = append(tools, t.consentTools()...)
	return append(tools, t.fileTools()...)
}

func reads(tool toolset.Tool) toolset.Tool {
	tool.Scope, tool.Bucket, tool.ReadOnly, tool.Idempotent, tool.Hints = v1alpha1.ScopeRead, toolset.BucketRead, true, true, true
	return tool
}

func writes(tool toolset.Tool) toolset.Tool {
	tool.Scope, tool.Hints = v1alpha1.ScopeWrite, true
	if tool.Bucket == "" {
		tool.Bucket = toolset.BucketWrite
	}
	return tool
}

func (t *Toolset) roomTools() []toolset.Tool {
	return []toolset.Tool{
		reads(toolset.Tool{
			Name: "whoami", Description: "Who you are: plate, alias, owner, scopes, pending mentions. Call it first.",
			Output: schemaOf[Identity](), Handle: t.whoami,
		}),
		reads(toolset.Tool{
			Name: "list_rooms", Description: "The rooms you are in, with ids and unread counts.",
			Output: schemaOf[RoomList](), Handle: t.listRooms,
		}),
		reads(toolset.Tool{
			Name: "list_members", Description: "The people and agents of a room.",
			Params: []toolset.Param{room}, Output: schemaOf[MemberList](), Handle: t.listMembers,
		}),
		reads(toolset.Tool{
			Name: "read_room", Description: "Messages of a room: the newest, or those before a seq. Work is on the board.",
			Params: []toolset.Param{room, integer("limit", 1, 100, "50 if absent"), integer("before_seq", 0, maxSeq, "")},
			Output: schemaOf[Page](), Handle: t.readRoom,
		}),
		writes(toolset.Tool{
			Name: "send_message", Bucket: toolset.BucketSend,
			Description: "Send a message. It reaches only those in mentions; the body is never scanned for names.",
			Params: []toolset.Param{
				room, required(text("body", v1alpha1.MaxBodyCharacters, "")),
				list("mentions", v1alpha1.MaxMessageMentions, "@name(owner), @name(owner)#session, or plates; never your own"),
				{Name: "parent_id", Type: toolset.TypeString, Max: 64, Nullable: true, Description: "id of the message you answer"},
				key, list("ack_mention_ids", 100, "mentions this handles"),
			},
			Output: schemaOf[Sent](), Handle: t.sendMessage,
		}),
		reads(toolset.Tool{
			Name: "resolve_handle", Description: "Whom a handle means, and their live instances.",
			Params: []toolset.Param{room, required(str("handle", "@name, @name(owner) or a plate"))},
			Output: schemaOf[Candidates](), Handle: t.resolveHandle,
		}),
		reads(toolset.Tool{
			Name: "list_instances", Description: "Running instances in a room and what each is on.",
			Params: []toolset.Param{room, str("plate", "only this agent: plate or alias")},
			Output: schemaOf[InstanceList](), Handle: t.listInstances,
		}),
	}
}

func (t *Toolset) mentionTools() []toolset.Tool {
	one := room
	one.Required = false
	scope := []toolset.Param{
		integer("since_seq", 0, maxSeq, ""), integer("limit", 1, 100, "20 if absent"), one, list("rooms", 100, "room ids; all rooms if absent"),
	}
	check := reads(toolset.Tool{
		Name: "check_mentions",
		Description: "Mentions for this instance to handle. Each goes to one instance and comes again if it is not " +
			"acknowledged within 90 s.",
		Params: scope, Output: schemaOf[MentionList](), Handle: t.checkMentions,
	})
	wait := reads(toolset.Tool{
		Name: "wait_for_mentions", Description: "Like check_mentions, but waits for one to come.",
		Params: append(scope[1:len(scope):len(scope)], integer("timeout_seconds", 1, 45, "30 if absent")),
		Output: schemaOf[MentionList](), Handle: t.waitForMentions,
	})
	check.ReadOnly, wait.ReadOnly, check.Idempotent, wait.Idempotent = false, false, false, false
	return []toolset.Tool{
		check, wait,
		writes(toolset.Tool{
			Name: "ack_mentions", Description: "Say that you handled mentions, by mention_ids, or all of a room up to a seq.",
			Params: []toolset.Param{one, integer("last_mention_seq", 0, maxSeq, ""), list("mention_ids", 100, "")},
			Output: schemaOf[Acks](), Handle: t.ackMentions, Idempotent: true,
		}),
	}
}

func (t *Toolset) taskTools() []toolset.Tool {
	order := integer("order", -maxOrder, maxOrder, "place in the lane, smaller first")
	priority := integer("priority", 0, 100, "larger is more urgent")
	dependsOn := list("depends_on", 32, "task ids that must be done before")
	return []toolset.Tool{
		writes(toolset.Tool{
			Name: "create_task", Description: "Create a task for an agent of the room. For another owner's agent it is a proposal " +
				"until that owner consents.",
			Params: []toolset.Param{
				room, required(text("title", 256, "")), required(text("definition_of_done", 2000, "how anybody can check that it is done")),
				required(str("assignee", "alias or plate")), text("detail", 8000, ""), order, priority, dependsOn,
				{Name: "type", Type: toolset.TypeString, Max: 32}, key,
			},
			Output: schemaOf[Task](), Handle: t.createTask,
		}),
		writes(toolset.Tool{
			Name: "assign_task", Description: "Assign a task to another agent. Whoever holds it loses it.",
			Params: []toolset.Param{taskID, required(str("assignee", "alias or plate")), key},
			Output: schemaOf[Task](), Handle: t.assignTask, Idempotent: true,
		}),
		writes(toolset.Tool{
			Name: "update_task", Description: "Edit a task you created. depends_on replaces the whole list.",
			Params: []toolset.Param{
				taskID, text("title", 256, ""), text("detail", 8000, ""), text("definition_of_done", 2000, ""), order, priority, dependsOn,
			},
			Output: schemaOf[Task](), Handle: t.updateTask, Idempotent: true,
		}),
		reads(toolset.Tool{
			Name: "read_board", Description: "The tasks of a room in lanes by assignee, with the latest records.",
			Params: []toolset.Param{
				room, str("assignee", "alias or plate"),
				{Name: "status", Type: toolset.TypeString, Enum: states},
			},
			Output: schemaOf[Board](), Handle: t.readBoard,
		}),
		writes(toolset.Tool{
			Name: "archive_task", Description: "Take a done, failed or cancelled task off the board.",
			Params: []toolset.Param{taskID}, Output: schemaOf[Archived](), Handle: t.archiveTask, Idempotent: true,
		}),
	}
}

func (t *Toolset) workTools() []toolset.Tool {
	return []toolset.Tool{
		writes(toolset.Tool{
			Name: "claim_task",
			Description: "Take a task before you work on it. ok false means another instance has it or it cannot be taken: leave " +
				"it alone.",
			Params: []toolset.Param{taskID, text("instance_id", 64, "same as session_id")},
			Output: schemaOf[Claim](), Handle: t.claimTask, Idempotent: true,
		}),
		writes(toolset.Tool{
			Name: "renew_lease", Bucket: toolset.BucketHeartbeat,
			Description: "Keep a task you hold. Call it well before lease.expires_at.",
			Params:      []toolset.Param{taskID, fence}, Output: schemaOf[Renewal](), Handle: t.renewLease, Idempotent: true,
		}),
		writes(toolset.Tool{
			Name: "release_task", Description: "Give a task back unfinished.",
			Params: []toolset.Param{taskID, fence}, Output: schemaOf[Task](), Handle: t.releaseTask, Idempotent: true,
		}),
		writes(toolset.Tool{
			Name:        "set_status",
			Description: "Set the state of a task, with a record for the board. reason is required for blocked, failed, cancelled.",
			Params: []toolset.Param{
				taskID, required(toolset.Param{Name: "status", Type: toolset.TypeString, Enum: states}),
				text("result_ref", 512, "file:path or message id"), text("reason", 1000, ""), text("summary", 1000, "one line: what happened"),
				{Name: "artifacts", Type: toolset.TypeStrings, MaxItems: 16, Max: 200, Description: "file:path or msg:id"},
				text("next", 500, ""), fence,
			},
			Output: schemaOf[Task](), Handle: t.setStatus, Idempotent: true,
		}),
	}
}

func (t *Toolset) consentTools() []toolset.Tool {
	names := []string{"task_by_task", "approve_all", "trust_collaborator", "trust_room"}
	terms := text("terms", 64, "terms of the proposal you read: refused if it says something else now")
	return []toolset.Tool{
		writes(toolset.Tool{
			Name: "set_room_consent", Description: "Set which proposals your owner's agents take unasked in a room. Needs the " +
				"delegation Consent.",
			Params: []toolset.Param{
				room, required(toolset.Param{Name: "mode", Type: toolset.TypeString, Enum: names}),
				str("collaborator", "owner to trust, with trust_collaborator"),
			},
			Output: schemaOf[RoomConsent](), Handle: t.setRoomConsent, Idempotent: true,
		}),
		writes(toolset.Tool{
			Name: "accept_task", Description: "Accept a proposal in your owner's name. Needs the delegation Consent.",
			Params: []toolset.Param{taskID, terms}, Output: schemaOf[Task](), Handle: t.decide(v1alpha1.VerdictAccept), Idempotent: true,
		}),
		writes(toolset.Tool{
			Name: "reject_task", Description: "Reject a proposal in your owner's name. Needs the delegation Consent.",
			Params: []toolset.Param{taskID, text("reason", 500, ""), terms}, Output: schemaOf[Task](),
			Handle: t.decide(v1alpha1.VerdictReject), Idempotent: true, Destructive: true,
		}),
		reads(toolset.Tool{
			Name: "list_pending_consents", Description: "Proposals that wait for your owner's decision.",
			Params: []toolset.Param{room}, Output: schemaOf[ProposalList](), Handle: t.listPendingConsents,
		}),
	}
}
