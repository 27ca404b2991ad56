class S(BaseModel):
    """A query."""
    text: str
