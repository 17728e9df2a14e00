// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type object = runtime.Object

// completeSubjects completes KIND/NAME and KIND NAME. A kind is completed without a cluster; names are
// those in the namespace of the flags. kindAlone tells whether a kind without a name makes sense too.
func (p *plugin) completeSubjects(kindAlone bool, of ...kind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if len(args) == 1 {
			k, err := kindCalled(args[0])
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return p.names(cmd.Context(), k, ""), cobra.ShellCompDirectiveNoFileComp
		}
		if word, _, ok := strings.Cut(toComplete, "/"); ok {
			k, err := kindCalled(word)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return p.names(cmd.Context(), k, word+"/"), cobra.ShellCompDirectiveNoFileComp
		}
		var words []string
		for _, k := range of {
			for _, word := range []string{k.short, strings.ToLower(k.name)} {
				if kindAlone {
					words = append(words, word)
				}
				words = append(words, word+"/")
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// names are the names of a kind's objects in the namespace, behind a prefix. A cluster that does not
// answer completes nothing: an error would end up on the line that is being typed.
func (p *plugin) names(ctx context.Context, k kind, prefix string) []string {
	cluster, namespace, err := p.cluster()
	if err != nil {
		return nil
	}
	list := k.newList()
	if err := cluster.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil
	}
	var names []string
	_ = meta.EachListItem(list, func(item object) error {
		names = append(names, prefix+item.(client.Object).GetName())
		return nil
	})
	return names
}
