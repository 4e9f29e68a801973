package rooms

// The results of the tools. Their names are a contract: fields may be added, never dropped or renamed.

// Identity is what whoami gives.
type Identity struct {
	Plate           string   `json:"plate"`
	Name            string   `json:"name"`
	Alias           string   `json:"alias"`
	Owner           string   `json:"owner"`
	Scopes          []string `json:"scopes"`
	Delegations     []string `json:"delegations"`
	PendingMentions int      `json:"pending_mentions"`
	SessionID       string   `json:"session_id,omitempty"`
}

// RoomInfo is a room as list_rooms gives it.
type RoomInfo struct {
	Room           string `json:"room"`
	Name           string `json:"name"`
	State          string `json:"state"`
	Role           string `json:"role"`
	Unread         int64  `json:"unread"`
	MentionsUnread int    `json:"mentions_unread"`
	LastSeq        int64  `json:"last_seq"`
	Description    string `json:"description,omitempty"`
}

// RoomList is what list_rooms gives.
type RoomList struct {
	Rooms []RoomInfo `json:"rooms"`
}

// MemberInfo is a person or an agent as list_members gives it.
type MemberInfo struct {
	Type   string `json:"type"`
	ID     string `json:"id"`
	Plate  string `json:"plate,omitempty"`
	Name   string `json:"name"`
	Alias  string `json:"alias,omitempty"`
	Owner  string `json:"owner,omitempty"`
	Role   string `json:"role"`
	Online bool   `json:"online"`
}

// MemberList is what list_members gives.
type MemberList struct {
	Members []MemberInfo `json:"members"`
}

// Sender of a message.
type Sender struct {
	Type     string `json:"type"`
	ID       string `json:"id"`
	Plate    string `json:"plate,omitempty"`
	Name     string `json:"name"`
	Verified bool   `json:"verified"`
}

// MentionTarget is who a message is for.
type MentionTarget struct {
	Plate     string `json:"plate"`
	Alias     string `json:"alias"`
	SessionID string `json:"session_id,omitempty"`
}

// Message of a room.
type Message struct {
	ID         string          `json:"id"`
	Seq        int64           `json:"seq"`
	Sender     Sender          `json:"sender"`
	Body       string          `json:"body"`
	Mentions   []MentionTarget `json:"mentions"`
	TrustLevel string          `json:"trust_level"`
	ParentID   *string         `json:"parent_id"`
	FileRef    *string         `json:"file_ref"`
	CreatedAt  string          `json:"created_at"`
}

// Page is what read_room gives.
type Page struct {
	Messages      []Message `json:"messages"`
	NextBeforeSeq *int64    `json:"next_before_seq"`
}

// Sent is what send_message gives.
type Sent struct {
	ID        string          `json:"id"`
	Seq       int64           `json:"seq"`
	Room      string          `json:"room"`
	CreatedAt string          `json:"created_at"`
	Mentions  []MentionTarget `json:"mentions"`
	Duplicate bool            `json:"duplicate"`
	Acked     []string        `json:"acked,omitempty"`
}

// MentionInfo is a mention delivered to an instance.
type MentionInfo struct {
	MentionID  string `json:"mention_id"`
	Room       string `json:"room"`
	MessageID  string `json:"message_id"`
	Seq        int64  `json:"seq"`
	From       string `json:"from"`
	TrustLevel string `json:"trust_level"`
	Excerpt    string `json:"excerpt"`
	TaskID     string `json:"task_id,omitempty"`
}

// MentionList is what check_mentions and wait_for_mentions give.
type MentionList struct {
	Mentions []MentionInfo `json:"mentions"`
	More     bool          `json:"more"`
}

// Acks is what ack_mentions gives.
type Acks struct {
	Acked        []string `json:"acked"`
	AlreadyAcked []string `json:"already_acked"`
	Pending      int      `json:"pending"`
}

// LiveInstance is an instance as resolve_handle gives it.
type LiveInstance struct {
	SessionID string `json:"session_id"`
	Summary   string `json:"summary"`
	Wakeable  bool   `json:"wakeable"`
}

// Candidate is an agent that a handle may mean.
type Candidate struct {
	Plate         string         `json:"plate"`
	Alias         string         `json:"alias"`
	LiveInstances []LiveInstance `json:"live_instances"`
}

// Candidates is what resolve_handle gives.
type Candidates struct {
	Candidates []Candidate `json:"candidates"`
}

// InstanceInfo is an instance as list_instances gives it.
type InstanceInfo struct {
	Plate     string `json:"plate"`
	Alias     string `json:"alias"`
	SessionID string `json:"session_id"`
	Host      string `json:"host,omitempty"`
	Workspace string `json:"workspace,omitempty"`
	Summary   string `json:"summary"`
	Wakeable  bool   `json:"wakeable"`
	LastSeen  string `json:"last_seen"`
}

// InstanceList is what list_instances gives.
type InstanceList struct {
	Instances []InstanceInfo `json:"instances"`
}

// Lease is who holds a task, and for how long.
type Lease struct {
	Holder           string `json:"holder"`
	SessionID        string `json:"session_id"`
	Fence            int64  `json:"fence"`
	ExpiresAt        string `json:"expires_at"`
	ExpiresInSeconds int64  `json:"expires_in_seconds"`
	Stale            bool   `json:"stale"`
}

// Record is what an agent said of its work.
type Record struct {
	TaskID    string   `json:"task_id"`
	Plate     string   `json:"plate"`
	Status    string   `json:"status"`
	Summary   string   `json:"summary"`
	Artifacts []string `json:"artifacts"`
	Next      string   `json:"next,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	ResultRef string   `json:"result_ref,omitempty"`
	At        string   `json:"at"`
	Late      bool     `json:"late,omitempty"`
}

// Task of a board.
type Task struct {
	TaskID           string   `json:"task_id"`
	Room             string   `json:"room"`
	Title            string   `json:"title"`
	Detail           string   `json:"detail,omitempty"`
	DefinitionOfDone string   `json:"definition_of_done"`
	Assignee         string   `json:"assignee"`
	AssigneeAlias    string   `json:"assignee_alias"`
	Creator          string   `json:"creator"`
	Order            int64    `json:"order"`
	Priority         int32    `json:"priority"`
	Status           string   `json:"status"`
	Consent          string   `json:"consent"`
	ConsentReason    string   `json:"consent_reason,omitempty"`
	DependsOn        []string `json:"depends_on"`
	BlockedBy        []string `json:"blocked_by"`
	Lease            *Lease   `json:"lease"`
	ResultRef        string   `json:"result_ref,omitempty"`
	Reason           string   `json:"reason,omitempty"`
	Record           *Record  `json:"record"`
	Archived         bool     `json:"archived"`
	CreatedAt        string   `json:"created_at"`
	UpdatedAt        string   `json:"updated_at"`
	Duplicate        bool     `json:"duplicate,omitempty"`
}

// Claim is what claim_task gives.
type Claim struct {
	OK        bool     `json:"ok"`
	TaskID    string   `json:"task_id"`
	Lease     *Lease   `json:"lease,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	State     string   `json:"state,omitempty"`
	Holder    string   `json:"holder,omitempty"`
	ExpiresAt string   `json:"expires_at,omitempty"`
	BlockedBy []string `json:"blocked_by,omitempty"`
}

// Renewal is what renew_lease gives.
type Renewal struct {
	OK     bool   `json:"ok"`
	TaskID string `json:"task_id"`
	Lease  Lease  `json:"lease"`
}

// Lane of a board.
type Lane struct {
	Assignee string `json:"assignee"`
	Alias    string `json:"alias"`
	Tasks    []Task `json:"tasks"`
}

// Board is what read_board gives.
type Board struct {
	Room    string         `json:"room"`
	Lanes   []Lane         `json:"lanes"`
	Records []Record       `json:"records"`
	Counts  map[string]int `json:"counts"`
}

// Archived is what archive_task gives.
type Archived struct {
	TaskID   string `json:"task_id"`
	Archived bool   `json:"archived"`
}

// RoomConsent is what set_room_consent gives.
type RoomConsent struct {
	Room          string   `json:"room"`
	Owner         string   `json:"owner"`
	Mode          string   `json:"mode"`
	Collaborators []string `json:"collaborators"`
}

// Party is an agent or a person as list_pending_consents gives it.
type Party struct {
	Plate string `json:"plate"`
	Alias string `json:"alias"`
	Owner string `json:"owner"`
}

// ProposalInfo is a proposal that waits for a decision.
type ProposalInfo struct {
	TaskID           string `json:"task_id"`
	Title            string `json:"title"`
	Detail           string `json:"detail,omitempty"`
	DetailLeftOut    bool   `json:"detail_left_out,omitempty"`
	DefinitionOfDone string `json:"definition_of_done"`
	From             Party  `json:"from"`
	Assignee         string `json:"assignee"`
	Terms            string `json:"terms"`
	CreatedAt        string `json:"created_at"`
}

// ProposalList is what list_pending_consents gives.
type ProposalList struct {
	Proposals []ProposalInfo `json:"proposals"`
}
