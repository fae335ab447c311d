/*
Copyright The Cozystack Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from 'react';

import { follow } from '../api/follow';
import type { Conflict, Option, OptionItem } from './items';

interface Known {
  /** The Options of the namespace by name, or undefined as long as they have not been read. */
  options?: ReadonlyMap<string, Option>;
  /** Why they cannot be read at present. */
  problem?: string;
}

/** What is known of one source. */
export interface Source {
  /** What it offers, or undefined if that is not known, or there is no such source. */
  items?: readonly OptionItem[];
  /** Whether the answer is still awaited. */
  loading: boolean;
  problem?: string;
  /** Whether the form is for a new object. */
  isNew: boolean;
  /** The value of another field with which a value cannot be combined. */
  conflictOf(value: string): string | undefined;
}

interface ContextValue extends Known {
  isNew: boolean;
  conflict: Conflict;
}

const Context = createContext<ContextValue>({ isNew: false, conflict: () => undefined });

interface Props {
  namespace: string;
  isNew: boolean;
  /** What the other fields of the form have to say about a value. */
  conflict: Conflict;
  children: ReactNode;
}

/** Follows the Options of a namespace, once for all fields below it. */
export function OptionsProvider({ namespace, isNew, conflict, children }: Props) {
  const [known, setKnown] = useState<Known>({});

  useEffect(() => {
    const controller = new AbortController();
    const url = `/apis/images.cozystack.io/v1alpha1/namespaces/${namespace}/options`;
    void follow<Option>(
      url,
      {
        onObjects: (options) => setKnown({ options }),
        onError: (error) =>
          setKnown(({ options }) => ({ options, problem: `The options cannot be read now: ${error.message}` })),
      },
      controller.signal,
    );
    return () => controller.abort();
  }, [namespace]);

  const value = useMemo(() => ({ ...known, isNew, conflict }), [known, isNew, conflict]);
  return <Context value={value}>{children}</Context>;
}

export function useOptions(name: string): Source {
  const { options, problem, isNew, conflict } = useContext(Context);
  const option = options?.get(name);
  const itemsOf = (source: string) => options?.get(source)?.spec?.items;
  return {
    items: option && (option.spec?.items ?? []),
    conflictOf: (value) => conflict(name, value, itemsOf),
    loading: !options && !problem,
    problem: problem ?? (options && !option ? `There are no options called ${name} here.` : undefined),
    isNew,
  };
}
