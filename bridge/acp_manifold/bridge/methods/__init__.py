"""Requests that not every client sends, by what they are about; `connection.METHODS` says what stands where."""
