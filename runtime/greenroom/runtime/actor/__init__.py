"""What an actor is and what its handlers are given: messages, context, effects."""
