package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/agentrooms/agentrooms/api/v1alpha1"
	"github.com/agentrooms/agentrooms/internal/backup"
	"github.com/agentrooms/agentrooms/internal/blobs"
	"github.com/agentrooms/agentrooms/internal/manager"
)

// backupFlags are the flags that rooms export and rooms import share.
type backupFlags struct {
	kubeconfig, namespace string
	blobs                 blobFlags
}

func (f *backupFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "how to reach the cluster; without it, as kubectl does, or as the pod's service account")
	flags.StringVarP(&f.namespace, "namespace", "n", "", "namespace of the room (default: the kubeconfig's)")
	f.blobs.addURL(flags)
}

// connect gives a client of the API server, the namespace, and the blob store, nil when none is named.
func (f *backupFlags) connect(ctx context.Context) (client.Client, string, *blobs.Store, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil)
	namespace := f.namespace
	if namespace == "" {
		var err error
		if namespace, _, err = loader.Namespace(); err != nil {
			return nil, "", nil, fmt.Errorf("finding out the namespace: %w", err)
		}
	}
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, "", nil, fmt.Errorf("finding out how to reach the cluster: %w", err)
	}
	ctrl.SetLogger(logr.Discard()) // errors are the command's own
	cfg.QPS, cfg.UserAgent = -1, manager.Name+"-backup/"+buildVersion()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, "", nil, fmt.Errorf("preparing the kinds: %w", err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, "", nil, fmt.Errorf("reaching the cluster: %w", err)
	}
	store, err := f.blobs.open(ctx)
	return c, namespace, store, err
}

func newExportCommand() *cobra.Command {
	f := &backupFlags{}
	var output string
	cmd := &cobra.Command{
		Use:   "export ROOM",
		Short: "Write a room into an archive",
		Long: `Write a room into one archive: its settings, the agents that belong to it, consents, tasks, how far each agent has read and
acknowledged, all messages, and its files with all versions that are kept. Work in the room goes on meanwhile; the archive shows one moment.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, namespace, store, err := f.connect(cmd.Context())
			if err != nil {
				return err
			}
			o := backup.ExportOptions{Client: c, Blobs: store, Namespace: namespace, Room: args[0]}
			if output == "" {
				output = args[0] + ".rooms.tar.gz"
			}
			var index *backup.Index
			err = writeTo(output, cmd.OutOrStdout(), func(w io.Writer) (err error) {
				index, err = backup.Export(cmd.Context(), o, w)
				return err
			})
			if err != nil {
				return fmt.Errorf("exporting room %s: %w", args[0], err)
			}
			say(cmd.ErrOrStderr(), "exported", index)
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "", "file to write, - for standard output (default ROOM.rooms.tar.gz)")
	return cmd
}

// writeTo writes a file, which is there as a whole or not at all.
func writeTo(path string, stdout io.Writer, write func(io.Writer) error) (err error) {
	if path == "-" {
		return write(stdout)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("making the archive: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	err = write(file)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return fmt.Errorf("putting the archive in place: %w", err)
	}
	return nil
}

func say(w io.Writer, done string, i *backup.Index) {
	n := i.Counts
	_, _ = fmt.Fprintf(w, "%s room %s (%s): %d messages, %d tasks, %d consents, %d agents, %d files with %d versions (%d bytes)\n",
		done, i.Room, i.ID, n.Messages, n.Tasks, n.Consents, n.Agents, n.Files, n.Versions, n.Bytes)
}

func newImportCommand() *cobra.Command {
	f := &backupFlags{}
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Restore a room from an archive",
		Long: `Restore a room from an archive that rooms export wrote, with the same ids, plates, numbers and states. The archive is verified before
anything is written, and a room that exists is never touched. Until all of it is there the room has no members; an import that was
interrupted goes on when it is made again. It takes the role agentrooms-restorer.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, namespace, store, err := f.connect(cmd.Context())
			if err != nil {
				return err
			}
			file, done, err := readFrom(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			defer done()
			index, err := backup.Import(cmd.Context(), backup.ImportOptions{Client: c, Blobs: store, Namespace: namespace}, file)
			if err != nil {
				return fmt.Errorf("importing %s: %w", args[0], err)
			}
			say(cmd.ErrOrStderr(), "imported", index)
			return nil
		},
	}
	f.add(cmd)
	return cmd
}

// readFrom opens an archive. Standard input goes into a file first, since an archive is read more than once.
func readFrom(path string, stdin io.Reader) (*os.File, func(), error) {
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, nil, fmt.Errorf("opening the archive: %w", err)
		}
		return file, func() { _ = file.Close() }, nil
	}
	file, err := os.CreateTemp("", "rooms-import-*")
	if err != nil {
		return nil, nil, fmt.Errorf("making room for the archive: %w", err)
	}
	done := func() {
		_ = file.Close()
		_ = os.Remove(file.Name())
	}
	if _, err := io.Copy(file, stdin); err != nil {
		done()
		return nil, nil, fmt.Errorf("reading the archive: %w", err)
	}
	return file, done, nil
}
