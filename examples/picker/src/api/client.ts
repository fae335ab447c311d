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

/** What Kubernetes answers when it refuses. */
export interface Status {
  kind: 'Status';
  code?: number;
  reason?: string;
  message?: string;
}

export interface ObjectMeta {
  name: string;
  namespace?: string;
  resourceVersion?: string;
}

export interface KubernetesObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

/** A refusal, in the API server's own words. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly code: number,
  ) {
    super(message);
    this.name = 'ApiError';
  }

  static fromStatus(status: Status): ApiError {
    return new ApiError(status.message ?? status.reason ?? 'unknown error', status.code ?? 0);
  }
}

/** Makes a request and returns the answer, or throws an ApiError if it is a refusal. */
export async function send(url: string, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  if (!response.ok) {
    throw await refusal(response);
  }
  return response;
}

export async function sendJSON<T>(url: string, init?: RequestInit): Promise<T> {
  return (await send(url, init)).json() as Promise<T>;
}

async function refusal(response: Response): Promise<ApiError> {
  const text = await response.text();
  try {
    const body = JSON.parse(text) as Status;
    if (body.kind === 'Status') {
      return ApiError.fromStatus({ ...body, code: response.status });
    }
  } catch {
    // Something between the page and the API server answered, in plain text.
  }
  return new ApiError(text.trim() || response.statusText, response.status);
}
